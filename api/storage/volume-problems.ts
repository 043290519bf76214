/** Validates what PersistentVolumes and claims share (pkg/apis/core/validation/validation.go of Kubernetes). */
import { dnsSubdomainProblem } from '../names.ts'
import { forbidden, invalid, notSupported, type Problem, required } from '../problem.ts'
import { compareQuantities, formatQuantity, type QuantityLike, zeroQuantity } from '../quantity.ts'
import type { Described } from '../schema.ts'
import { problemsWith } from '../validation/metadata-validation.ts'
import type { NFSVolumeSourceSchema } from './volume-source.ts'

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']
const volumeModes = ['Block', 'Filesystem']

/** `field` is the path of the list, which must have been checked for being empty. */
export function accessModeProblems(field: string, modes: readonly string[]): readonly Problem[] {
  const known = new Set(modes.filter((mode) => accessModes.includes(mode)))
  const isMixed = known.has('ReadWriteOncePod') && known.size > 1
  return [
    ...modes.filter((mode) => !known.has(mode)).map((mode) => notSupported(field, mode, accessModes)),
    ...(isMixed ? [forbidden(field, 'may not use ReadWriteOncePod with other access modes')] : []),
  ]
}

export function volumeModeProblems(field: string, mode: string | undefined): readonly Problem[] {
  return mode === undefined || volumeModes.includes(mode) ? [] : [notSupported(field, mode, volumeModes)]
}

/** A missing class and the class '' mean the same. */
export function classNameProblems(field: string, name: string | undefined): readonly Problem[] {
  return name ? problemsWith(field, name, dnsSubdomainProblem) : []
}

/** ValidatePositiveQuantityValue. */
export function positiveAmountProblems(field: string, amount: QuantityLike): readonly Problem[] {
  if (compareQuantities(amount, zeroQuantity) > 0) return []
  return [invalid(field, formatQuantity(amount), 'must be greater than zero')]
}

/** Also of a pod's own volume. */
export function nfsProblems(
  field: string,
  { server, path }: Described<typeof NFSVolumeSourceSchema>,
): readonly Problem[] {
  return [
    ...(server === '' ? [required(`${field}.server`)] : []),
    ...(path === '' ? [required(`${field}.path`)] : []),
    ...(path.startsWith('/') ? [] : [invalid(`${field}.path`, path, 'must be an absolute path')]),
  ]
}

/** `RWO,ROX`, each mode once (GetAccessModesAsString). */
export function shortAccessModes(modes: readonly string[] = []): string {
  const short = [
    ['ReadWriteOnce', 'RWO'],
    ['ReadOnlyMany', 'ROX'],
    ['ReadWriteMany', 'RWX'],
    ['ReadWriteOncePod', 'RWOP'],
  ] as const
  return short.flatMap(([mode, text]) => (modes.includes(mode) ? [text] : [])).join()
}
