// What a row of the table of threats says.

/** A test by its file and its title, or that of the suite around it. */
export interface NamedTest {
  readonly file: string;
  readonly title: string;
}

export interface Threat {
  readonly id: number;
  /** Of STRIDE: spoofing, tampering, repudiation, information disclosure, denial of service, elevation of privilege. */
  readonly stride: string;
  readonly threat: string;
  readonly rule: string;
  readonly tests: readonly NamedTest[];
  /** What of it is not done, or not shown by a test, and why. */
  readonly open?: string;
}

/** Names the tests of one file. */
export const of =
  (file: string) =>
  (...titles: readonly string[]): readonly NamedTest[] =>
    titles.map((title) => ({ file, title }));
