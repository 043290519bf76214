/** Names that the API generates. */

/** Letters and digits that make no words and are not mistaken for one another, as Kubernetes chooses them. */
const suffixCharacters = 'bcdfghjklmnpqrstvwxz2456789'
const suffixLength = 5
/** So that the name is a DNS label (maxGeneratedNameLength in staging/src/k8s.io/apiserver/pkg/storage/names/generate.go). */
const longestBeginning = 63 - suffixLength

/** The name that `generateName`, or another beginning, becomes; a long beginning is cut. `random`: 0 to less than 1. */
export function generatedName(beginning: string, random: () => number): string {
  const character = () => suffixCharacters[Math.floor(random() * suffixCharacters.length)]
  return `${beginning.slice(0, longestBeginning)}${Array.from({ length: suffixLength }, character).join('')}`
}
