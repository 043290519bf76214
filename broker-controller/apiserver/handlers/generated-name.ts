/** Names that the API generates. */

/** Letters and digits that make no words and are not mistaken for one another, as Kubernetes chooses them. */
const suffixCharacters = 'bcdfghjklmnpqrstvwxz2456789'
const suffixLength = 5

/** The name that `generateName`, or another beginning, becomes. `random`: 0 to less than 1. */
export function generatedName(beginning: string, random: () => number): string {
  const character = () => suffixCharacters[Math.floor(random() * suffixCharacters.length)]
  return `${beginning}${Array.from({ length: suffixLength }, character).join('')}`
}
