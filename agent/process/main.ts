// Runs the executable rollout-group-agent: limits the memory of V8, reads the flags, and loads and starts the agent.
import { messageOf } from '../../policies/error-message.ts';
import { agentName } from '../../policies/objects/agent-deployment.ts';
import { parseFlags, usageText, version } from '../flags/command-line.ts';
import { settingsOf } from '../flags/settings.ts';
import { keepMemorySmall, processIdentity } from './own-process.ts';

keepMemorySmall();
process.stderr.on('error', () => undefined);
process.stdout.on('error', () => undefined);
void run(process.argv.slice(2));

async function run(words: readonly string[]): Promise<void> {
  const parsed = parseFlags(words);
  switch (parsed.kind) {
    case 'help':
      process.stdout.write(usageText());
      return;
    case 'version':
      process.stdout.write(`${agentName} ${version}\n`);
      return;
    case 'wrong':
      process.stderr.write(`${parsed.message}\n${usageText()}`);
      process.exitCode = 2;
      return;
    case 'values': {
      const settings = settingsOf(parsed.values, { identity: processIdentity() });
      if ('refused' in settings) return refuse(settings.refused);
      try {
        await (await import('./start.ts')).start(settings);
      } catch (error) {
        refuse(messageOf(error));
        // The HTTP server may already listen, and would keep the process alive.
        process.exit();
      }
    }
  }
}

function refuse(sentence: string): void {
  process.stderr.write(`${sentence.replace(/\s*\n\s*/g, ' ')}\n`);
  process.exitCode = 1;
}
