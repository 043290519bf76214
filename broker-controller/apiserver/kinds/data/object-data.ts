/** Rules shared by ConfigMaps and Secrets: keys, data of bounded size, and immutability. */
import { isDeepStrictEqual } from 'node:util'
import type { ConfigMap } from '../../../../api/config-map.ts'
import { dataKeyProblem } from '../../../../api/names.ts'
import { forbidden, type Problem } from '../../../../api/problem.ts'
import type { Secret } from '../../../../api/secret.ts'
import { problemsWith, tooLong } from '../../../../api/validation/metadata-validation.ts'

const mostDataBytes = 1024 * 1024

export function keyProblems(field: string, data: object): readonly Problem[] {
  const wrong = Object.keys(data).filter((key) => dataKeyProblem(key) !== undefined)
  return wrong.flatMap((key) => problemsWith(`${field}[${key}]`, key, dataKeyProblem))
}

export type Data = { readonly [key: string]: string }

export function textBytes(data: Data): number {
  return Object.values(data).reduce((sum, value) => sum + Buffer.byteLength(value), 0)
}

export function decodedBytes(data: Data): number {
  return Object.values(data).reduce((sum, value) => sum + Buffer.byteLength(value, 'base64'), 0)
}

/** `field`: that of a Secret is `data`, that of a ConfigMap has no name (ValidateConfigMap in pkg/apis/core/validation/validation.go). */
export function sizeProblems(field: 'data' | '[]', bytes: number): readonly Problem[] {
  return bytes <= mostDataBytes ? [] : [tooLong(field, mostDataBytes)]
}

type Freezable = ConfigMap | Secret

/** Once immutable, always so, and its content with it. */
export function frozenProblems<T extends Freezable>(
  old: T,
  now: T,
  content: readonly (keyof T & string)[],
): readonly Problem[] {
  if (old.immutable !== true) return []
  const because = 'field is immutable when `immutable` is set'
  return [
    ...(now.immutable === true ? [] : [forbidden('immutable', because)]),
    ...content.filter((field) => !isDeepStrictEqual(old[field], now[field])).map((field) => forbidden(field, because)),
  ]
}
