/** Validates metadata: names, labels and the other fields that every object has. */
import type { ObjectMeta } from '../meta.ts'
import {
  dnsLabelProblem,
  dnsSubdomainProblem,
  labelKeyProblem,
  labelValueProblem,
  qualifiedNameProblem,
} from '../names.ts'
import { forbidden, invalid, type Problem, required } from '../problem.ts'

const mostAnnotationBytes = 256 * 1024
const utf8 = new TextEncoder()

/** The check's sentence, if it has one, as a problem of that field. */
export function problemsWith(field: string, value: string, check: (text: string) => string | undefined): Problem[] {
  const problem = check(value)
  return problem === undefined ? [] : [invalid(field, value, problem)]
}

/**
 * Problems of a text that must be one segment of a path (IsValidPathSegmentName, apimachinery api/validation/path).
 * `whenEmpty`: why it is required.
 */
export function pathSegmentProblems(field: string, text: string, whenEmpty?: string): readonly Problem[] {
  if (text === '') return [required(field, whenEmpty)]
  if (text === '.' || text === '..') return [invalid(field, text, `may not be '${text}'`)]
  return ['/', '%']
    .filter((sign) => text.includes(sign))
    .map((sign) => invalid(field, text, `may not contain '${sign}'`))
}

export function labelProblems(field: string, labels: { readonly [key: string]: string } = {}): Problem[] {
  return Object.entries(labels).flatMap(([key, value]) => [
    ...problemsWith(field, key, labelKeyProblem),
    ...problemsWith(field, value, labelValueProblem),
  ])
}

/** What the names of a kind must be. */
export type NameRules = {
  readonly namespaced: boolean
  /** undefined: a DNS subdomain. */
  readonly nameProblem?: (name: string) => string | undefined
  /** Its finalizers need no domain: its metadata is validated by apimachinery alone, not by pkg/apis/core/validation. */
  readonly takesAnyFinalizer?: true
}

export function metadataProblems(rules: NameRules, metadata: ObjectMeta): Problem[] {
  return [
    ...nameProblems(rules, metadata),
    ...labelProblems('metadata.labels', metadata.labels),
    ...annotationProblems('metadata.annotations', metadata.annotations),
    ...finalizerProblems(rules, metadata.finalizers ?? []),
    ...ownerProblems(metadata),
    ...managedFieldsProblems(metadata),
  ]
}

const standardFinalizers = ['kubernetes', 'orphan', 'foregroundDeletion']

/** ValidateFinalizers (apimachinery, api/validation/objectmeta.go), validateKubeFinalizerName (pkg/apis/core/validation/validation.go). */
function finalizerProblems({ takesAnyFinalizer }: NameRules, finalizers: readonly string[]): Problem[] {
  const at = 'metadata.finalizers'
  const isBoth = finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')
  const isComplete = (name: string) => takesAnyFinalizer || name.includes('/') || standardFinalizers.includes(name)
  const because = 'name is neither a standard finalizer name nor is it fully qualified'
  return [
    ...finalizers.flatMap((finalizer) => problemsWith(at, finalizer, qualifiedNameProblem)),
    ...(isBoth ? [invalid(at, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set')] : []),
    ...finalizers.flatMap((one, index) => (isComplete(one) ? [] : [invalid(`${at}[${index}]`, one, because)])),
  ]
}

const longestManagerBytes = 128
const usualManager = /^[ -~]{0,128}$/
const longestSubresource = 256

/** As ValidateFieldManager (apimachinery, meta/v1/validation). */
export function managerNameProblems(field: string, name: string): Problem[] {
  if (usualManager.test(name)) return []
  const isLong = utf8.encode(name).length > longestManagerBytes
  const character = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(name)
  const code = character?.[0].codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
  return [
    ...(isLong ? [tooLong(field, longestManagerBytes)] : []),
    ...(character === null
      ? []
      : [invalid(field, name, `invalid character U+${code} (at position ${character.index})`)]),
  ]
}

function managedFieldsProblems({ managedFields = [] }: ObjectMeta): Problem[] {
  return managedFields.flatMap(({ manager = '', subresource = '' }, index) => {
    const field = `metadata.managedFields[${index}]`
    const isLong = subresource.length > longestSubresource
    return [
      ...managerNameProblems(`${field}.manager`, manager),
      ...(isLong ? [tooLong(`${field}.subresource`, longestSubresource)] : []),
    ]
  })
}

export function tooLong(field: string, bytes: number): Problem {
  return { field, reason: 'FieldValueTooLong', message: `Too long: may not be more than ${bytes} bytes` }
}

/** What may not change while an object lives. */
export function metadataChangeProblems(old: ObjectMeta, now: ObjectMeta): Problem[] {
  const fixed = (['name', 'namespace'] as const).filter((field) => now[field] !== old[field])
  const problems = fixed.map((field) => invalid(`metadata.${field}`, now[field], 'field is immutable'))
  const earlier = new Set(old.finalizers)
  const added = (now.finalizers ?? []).filter((finalizer) => !earlier.has(finalizer))
  if (old.deletionTimestamp === undefined || added.length === 0) return problems
  const because = `no new finalizers can be added if the object is being deleted, found new finalizers ${added.join(', ')}`
  return [...problems, forbidden('metadata.finalizers', because)]
}

function nameProblems(
  { namespaced, nameProblem = dnsSubdomainProblem }: NameRules,
  { name, namespace }: ObjectMeta,
): Problem[] {
  const named = name
    ? problemsWith('metadata.name', name, nameProblem)
    : [required('metadata.name', 'name or generateName is required')]
  if (!namespaced) {
    return namespace ? [...named, forbidden('metadata.namespace', 'not allowed on this type')] : named
  }
  if (!namespace) return [...named, required('metadata.namespace')]
  return [...named, ...problemsWith('metadata.namespace', namespace, dnsLabelProblem)]
}

export function annotationProblems(field: string, annotations: { readonly [key: string]: string } = {}): Problem[] {
  const keys = Object.keys(annotations).flatMap((key) =>
    problemsWith(field, key, (text) => qualifiedNameProblem(text.toLowerCase())),
  )
  const bytes = Object.entries(annotations).reduce((sum, [key, value]) => sum + utf8.encode(key + value).length, 0)
  if (bytes <= mostAnnotationBytes) return keys
  return [...keys, tooLong(field, mostAnnotationBytes)]
}

function ownerProblems({ ownerReferences = [] }: ObjectMeta): Problem[] {
  const problems = ownerReferences.flatMap((owner, index) =>
    (['apiVersion', 'kind', 'name', 'uid'] as const)
      .filter((field) => owner[field] === '')
      .map((field) => required(`metadata.ownerReferences[${index}].${field}`)),
  )
  const controllers = ownerReferences.filter(({ controller }) => controller === true)
  if (controllers.length < 2) return problems
  return [
    ...problems,
    invalid('metadata.ownerReferences', controllers[1]?.name, 'only one of them may be the controller'),
  ]
}
