// The order in which suites begin: those that take longest come first, so that no worker ends with one while the others have nothing left.
import { BaseSequencer, type TestSequencerConstructor, type TestSpecification } from 'vitest/node';

/** Returns a sequencer that begins with the given files, in that order; the others follow in the order that vitest gives them. */
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
