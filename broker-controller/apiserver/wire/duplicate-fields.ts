/** Finds fields that a JSON text gives twice: a parser keeps the last of them without a word. */
import { mostProblems } from '../../../api/problem.ts'
import { endOfText } from './body-limits.ts'

const longestPath = 512
const none: Set<string> = new Set()

/** One object or list around the place that is read. */
type Level = {
  /** Names that were read so far in an object; undefined for a list. */
  readonly names: Set<string> | undefined
  /** Those of them that were read more than once. */
  readonly repeated: Set<string>
  /** The last name of an object, the place in a list. */
  at: string | number
  /** Whether the next text is a name. */
  awaitsName: boolean
}

/**
 * The paths of fields that stand more than once in their object, as `spec.containers[0].image`, each once, in the order of
 * the text and at most `mostProblems` (DisallowDuplicateFields in sigs.k8s.io/json). The text must be JSON that was parsed before:
 * its number of fields and levels is limited then.
 */
export function duplicateFields(json: Buffer): readonly string[] {
  const found = new Set<string>()
  const levels: Level[] = []
  for (let index = 0; index < json.length && found.size < mostProblems; index++) {
    const level = levels.at(-1)
    switch (json[index]) {
      case 0x22: {
        const end = endOfText(json, index)
        if (
          level?.names !== undefined &&
          level.awaitsName &&
          isRepeated(level, level.names, nameOf(json, index, end))
        ) {
          found.add(pathOf(levels))
        }
        index = end
        break
      }
      case 0x7b: // {
        levels.push({ names: new Set(), repeated: new Set(), at: '', awaitsName: true })
        break
      case 0x5b: // [
        levels.push({ names: undefined, repeated: none, at: 0, awaitsName: false })
        break
      case 0x7d: // }
      case 0x5d: // ]
        levels.pop()
        break
      case 0x2c: // ,
        if (level !== undefined) nextIn(level)
    }
  }
  return [...found]
}

/** Takes the name in. True when the object has had it once before. */
function isRepeated(level: Level, names: Set<string>, name: string): boolean {
  level.at = name
  level.awaitsName = false
  if (!names.has(name)) {
    names.add(name)
    return false
  }
  if (level.repeated.has(name)) return false
  level.repeated.add(name)
  return true
}

function nextIn(level: Level): void {
  if (level.names === undefined) level.at = Number(level.at) + 1
  else level.awaitsName = true
}

/** Two ways of writing a name, with and without escapes, are the same name. */
function nameOf(json: Buffer, start: number, end: number): string {
  const text = json.toString('utf8', start, end + 1)
  return text.includes('\\') ? String(JSON.parse(text)) : text.slice(1, -1)
}

/** Cut where it is longer than a message shows: names can be of any length, and levels many. */
function pathOf(levels: readonly Level[]): string {
  let path = ''
  for (const { at } of levels) {
    path += typeof at === 'number' ? `[${at}]` : path === '' ? at : `.${at}`
    if (path.length > longestPath) break
  }
  return path.slice(0, longestPath)
}
