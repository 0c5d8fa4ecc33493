// Texts that the bundler embeds.
declare module '*.md' {
  const text: string;
  export = text;
}
