// Starts the slowest suites first, so that no worker runs a slow suite while the other workers are idle.
import { BaseSequencer, type TestSequencerConstructor, type TestSpecification } from 'vitest/node';

/** Returns a sequencer that starts with the given files in their order, followed by the others in the order of vitest. */
export function longestFirst(files: readonly string[]): TestSequencerConstructor {
  const rankOf = ({ moduleId }: TestSpecification): number => {
    const rank = files.findIndex((file) => moduleId.endsWith(`/${file}`));
    return rank === -1 ? files.length : rank;
  };
  return class extends BaseSequencer {
    override async sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
      const usual = await super.sort(specifications);
      return usual.sort((a, b) => rankOf(a) - rankOf(b));
    }
  };
}
