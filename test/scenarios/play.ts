// Plays a scenario: every block of commands in turn, with what it prints.
import { messageOf } from '../../policies/error-message.ts';
import type { Commands } from './command.ts';
import { agentCommands } from './commands/agent.ts';
import { clusterCommands } from './commands/cluster.ts';
import { evidenceCommands } from './commands/evidence.ts';
import { ledgerCommands } from './commands/ledger.ts';
import { peopleCommands } from './commands/people.ts';
import { podCommands } from './commands/pod.ts';
import { requestCommands } from './commands/requests.ts';
import { setupCommands } from './commands/setup.ts';
import { showCommands } from './commands/show.ts';
import { timeCommands } from './commands/time.ts';
import { applyPolicies, newStage, type Stage } from './stage.ts';
import { type Call, type Part, readTranscript, writeTranscript } from './transcript.ts';

/** Every command that a story may use. */
export const commands: Commands = {
  ...setupCommands,
  ...clusterCommands,
  ...podCommands,
  ...timeCommands,
  ...agentCommands,
  ...requestCommands,
  ...peopleCommands,
  ...evidenceCommands,
  ...ledgerCommands,
  ...showCommands,
};

interface Played {
  /** The file as it would be written now. */
  readonly text: string;
  readonly decisions: number;
  readonly violations: readonly string[];
}

/** Plays the text of a scenario file from its beginning. A command that cannot be understood is an error with its line. */
export function playScenario(text: string): Played {
  const stage = newStage();
  const parts = readTranscript(text).map((part): Part => {
    if (part.kind === 'text') return part;
    const output = part.block.calls.flatMap((call) => run(stage, call));
    return { kind: 'block', block: { ...part.block, output } };
  });
  return { text: writeTranscript(parts), decisions: stage.decisions, violations: stage.violations };
}

function run(stage: Stage, call: Call): readonly string[] {
  const command = commands[call.name];
  if (command === undefined) throw new Error(`line ${call.line}: there is no command ${call.name}`);
  try {
    const lines = command(stage, call);
    applyPolicies(stage);
    return lines;
  } catch (error) {
    throw new Error(`line ${call.line}: ${call.name}: ${messageOf(error)}`, { cause: error });
  }
}
