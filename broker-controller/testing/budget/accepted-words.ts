/**
 * The words that a kind accepts in fields that take one of a set: validators name them where they refuse another one. An object that has
 * them gets past these checks, to what is done with valid ones and with those that are repeated.
 */

import { decode } from '../../../api/decode.ts'
import { administrator } from '../../../api/identity.ts'
import type { AnyObject } from '../../../api/meta.ts'
import type { KindStrategy } from '../../apiserver/handlers/strategy.ts'
import { type FieldWords, largeObjects } from '../largest-objects.ts'

/** One refusal may hide the next. */
const rounds = 3

/** Words that the lists and maps for which `isOf` holds accept. */
export function acceptedWords(kind: KindStrategy, isOf: (field: string) => boolean): FieldWords {
  let words: FieldWords = new Map()
  for (let round = 0; round < rounds; round++) {
    const large = largeObjects(kind, words).filter(({ field }) => isOf(field))
    const found = large.flatMap(({ object }) => wordsIn(problemsOf(kind, object(2, 'a'))))
    if (found.every(([field]) => words.has(field))) break
    words = new Map([...words, ...found])
  }
  return words
}

type Refusal = { readonly field: string; readonly reason: string; readonly message: string }

function problemsOf(kind: KindStrategy, object: object): readonly Refusal[] {
  const decoded = decode(kind.schema, object)
  if (!decoded.ok) return decoded.problems
  const whole = { ...(decoded.value as AnyObject) }
  const complete = kind.withDefaults?.(whole) ?? whole
  return kind.validateCreate?.(complete, { nowMs: 0, requester: administrator }) ?? []
}

/** `spec.accessModes[3]` stands for `spec.accessModes[]`. */
function wordsIn(problems: readonly Refusal[]): readonly [string, readonly string[]][] {
  return problems.flatMap(({ field, reason, message }): [string, readonly string[]][] => {
    const list = /supported values: (.*)$/.exec(message)?.[1]
    if (reason !== 'FieldValueNotSupported' || list === undefined) return []
    const words = JSON.parse(`[${list}]`) as string[]
    const usable = words.filter((word) => word !== '' && word !== 'nil')
    return usable.length === 0 ? [] : [[field.replaceAll(/\[[^\]]*\]/g, '[]'), usable]]
  })
}
