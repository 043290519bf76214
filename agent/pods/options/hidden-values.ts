/** Texts of the container engine without the values of variables, which may be those of Secrets. */

type Variable = { readonly name: string; readonly value: string }

/** Shorter ones are in many texts by chance. */
const leastLength = 4

/** `text` with each value, also one that Go has quoted, replaced by "[value of NAME]". */
export function withoutValues(text: string, env: readonly Variable[]): string {
  const hidden = env
    .filter(({ value }) => value.length >= leastLength)
    .flatMap(({ name, value }) => [value, JSON.stringify(value).slice(1, -1)].map((written) => ({ name, written })))
    // The longest first: one value may be a part of another.
    .sort((a, b) => b.written.length - a.written.length)
  // A function: in a text `$&`, which a name may have, would stand for the value.
  return hidden.reduce((shown, { name, written }) => shown.replaceAll(written, () => `[value of ${name}]`), text)
}
