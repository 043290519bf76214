/** core/v1 Secret (pkg/registry/core/secret/strategy.go). */
import { invalid, type Problem, required } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import type { Secret } from '../../../../api/secret.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { keyPairProblem } from './key-pair.ts'
import { type Data, decodedBytes, frozenProblems, keyProblems, sizeProblems } from './object-data.ts'

/** Only counts: no cell contains secret data. */
const secretTable: TableOf<Secret> = {
  columns: tableColumns('Name', 'Type', 'Data', 'Age'),
  cells: ({ metadata, type = '', data = {} }, nowMs) => [
    metadata.name ?? '',
    type,
    Object.keys(data).length,
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

export const secretStrategy: KindStrategy<Secret> = {
  ...resources.secrets,
  table: secretTable,
  selectableFields: ['type'],
  subresources: {},
  withDefaults: withSecretDefaults,
  // What a node delivers after a restore is all that it has of a secret.
  validateCreate: (secret, { restored }) => [...secretProblems(secret), ...(restored ? [] : contentProblems(secret))],
  validateUpdate: (old, now) => [...secretProblems(now), ...contentProblems(now), ...changeProblems(old, now)],
  warningsOnCreate: tlsWarnings,
  warningsOnUpdate: (_, now) => tlsWarnings(now),
}

/** `stringData` is for writing only: it is kept as `data`. */
function withSecretDefaults(secret: Secret): Secret {
  const { stringData = {}, ...rest } = secret
  const data: { [key: string]: string } = { ...rest.data }
  for (const key of Object.keys(stringData)) data[key] = Buffer.from(stringData[key] ?? '').toString('base64')
  return { ...rest, type: rest.type || 'Opaque', ...(Object.keys(data).length > 0 && { data }) }
}

function secretProblems({ data = {} }: Secret): readonly Problem[] {
  return [...keyProblems('data', data), ...sizeProblems('data', decodedBytes(data))]
}

function tlsWarnings({ type, data = {} }: Secret): readonly string[] {
  if (type !== 'kubernetes.io/tls') return []
  const pem = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString('latin1')
  const problem = keyPairProblem(pem('tls.crt'), pem('tls.key'))
  return problem === undefined ? [] : [problem]
}

/** A secret of a type that states its content must have that content (ValidateSecret). */
function contentProblems({ metadata, type, data = {} }: Secret): readonly Problem[] {
  const missing = (...keys: readonly string[]) =>
    keys.filter((key) => !Object.hasOwn(data, key)).map((key) => required(`data[${key}]`))
  switch (type) {
    case 'kubernetes.io/dockerconfigjson':
      return loginProblems('.dockerconfigjson', data)
    case 'kubernetes.io/dockercfg':
      return loginProblems('.dockercfg', data)
    case 'kubernetes.io/tls':
      return missing('tls.crt', 'tls.key')
    case 'kubernetes.io/ssh-auth':
      return data['ssh-privatekey'] ? [] : [required('data[ssh-privatekey]')]
    case 'kubernetes.io/basic-auth': {
      const problems = missing('username', 'password')
      return problems.length === 2 ? problems : []
    }
    case 'kubernetes.io/service-account-token': {
      const account = 'kubernetes.io/service-account.name'
      return metadata.annotations?.[account] ? [] : [required(`metadata.annotations[${account}]`)]
    }
    default:
      return []
  }
}

/** Logins at registries, as Docker writes them. The content is not shown. */
function loginProblems(key: string, data: Data): readonly Problem[] {
  const field = `data[${key}]`
  const encoded = data[key]
  if (encoded === undefined) return [required(field)]
  try {
    const content: unknown = JSON.parse(Buffer.from(encoded, 'base64').toString('utf8'))
    if (typeof content === 'object' && content !== null && !Array.isArray(content)) return []
  } catch {
    // The message of the parser would show a part of the content.
  }
  return [invalid(field, '<secret contents redacted>', 'must be a JSON object')]
}

function changeProblems(old: Secret, now: Secret): readonly Problem[] {
  const retyped = old.type === now.type ? [] : [invalid('type', now.type, 'field is immutable')]
  return [...retyped, ...frozenProblems(old, now, ['data'])]
}
