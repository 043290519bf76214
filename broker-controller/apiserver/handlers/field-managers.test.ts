import { test } from 'tap'
import { administrator } from '../../../api/identity.ts'
import type { AnyObject, ManagedFieldsEntry } from '../../../api/meta.ts'
import { kinds } from '../../assembly/control-plane.ts'
import { causes } from '../../testing/admitting.ts'
import { pathsOfMembers } from '../managed-fields/field-set.ts'
import { managedWrite, updatedManagers } from './field-managers.ts'
import type { ResourceRequest } from './strategy.ts'

type Asked = {
  readonly query?: string
  readonly verb?: 'create' | 'update' | 'patch'
  readonly userAgent?: string
  readonly resource?: 'pods' | 'deployments' | 'configmaps' | 'secrets'
  readonly subresource?: string
}
const request = ({
  query = '',
  verb = 'update',
  userAgent,
  resource = 'pods',
  subresource = '',
}: Asked): ResourceRequest => ({
  route: { kind: 'resource', verb, resource: kinds[resource], namespace: 'default', name: 'web', subresource },
  identity: administrator,
  query: new URLSearchParams(query),
  accept: undefined,
  contentType: undefined,
  ...(userAgent !== undefined && { userAgent }),
  readBody: async () => Buffer.alloc(0),
  signal: new AbortController().signal,
})
const write = (asked: Asked = {}, operation: 'Apply' | 'Update' = 'Update') =>
  managedWrite(request(asked), operation, Date.parse('2026-01-01T00:00:00Z'))
const refused = (asked: Asked, operation: 'Apply' | 'Update' = 'Update') => causes(() => write(asked, operation))

test('a writer is named by the query, or by the beginning of its User-Agent', async (t) => {
  const named = (userAgent?: string, query = '') =>
    write({ query, ...(userAgent !== undefined && { userAgent }) }).writer.manager
  const agents: readonly (readonly [string | undefined, string])[] = [
    ['kubectl/v1.32.4 (linux/arm64) kubernetes/abc', 'kubectl'],
    ['curl', 'curl'],
    ['Mozilla 5 é', 'Mozilla 5 é'],
    ['a\u0000b\tc\u200b/1', 'abc'],
    [`${'x'.repeat(129)}/1`, 'x'.repeat(128)],
    ['/1', 'unknown'],
    ['', 'unknown'],
    [undefined, 'unknown'],
  ]
  for (const [userAgent, manager] of agents) t.equal(named(userAgent), manager, JSON.stringify(userAgent))
  t.equal(named('kubectl/v1.32.4', 'fieldManager=ann'), 'ann')
  t.equal(named('kubectl/v1.32.4', 'fieldManager='), 'kubectl')
})

test('a write has the version of its kind, its subresource and a time', async (t) => {
  t.match(write({ query: 'fieldManager=ann', resource: 'deployments', subresource: 'scale' }, 'Apply'), {
    writer: { manager: 'ann', operation: 'Apply', apiVersion: 'apps/v1', subresource: 'scale' },
    now: '2026-01-01T00:00:00Z',
  })
  t.match(write(), { writer: { operation: 'Update', apiVersion: 'v1', subresource: '' } })
})

test('a write owns none of the fields that it leaves as they are', async (t) => {
  const reset = (asked: Asked) => pathsOfMembers(write(asked).reset)
  t.same(reset({}), ['.status'])
  t.same(reset({ subresource: 'status' }), ['.spec'])
  t.same(reset({ resource: 'configmaps' }), [], 'a kind without a status')
  t.same([...reset({ resource: 'deployments', subresource: 'status' })].sort(), ['.metadata.labels', '.spec'])
  t.same(reset({ resource: 'deployments', subresource: 'scale' }), ['.status'])
})

test('what is wrong with the options of a write is refused', async (t) => {
  t.same(refused({ query: 'fieldManager=ann&force=true', verb: 'patch' }, 'Apply'), [])
  t.same(refused({ verb: 'patch' }, 'Apply'), ['fieldManager: Required value: is required for apply patch'])
  t.same(refused({ query: 'force=false', verb: 'patch' }), [
    'force: Forbidden: may not be specified for non-apply patch',
  ])
  t.same(refused({ query: 'force=true' }), [], 'other verbs have no such option')
  t.same(refused({ query: `fieldManager=${'x'.repeat(128)}` }), [])
  t.same(refused({ query: `fieldManager=${'x'.repeat(129)}` }), [
    'fieldManager: Too long: may not be more than 128 bytes',
  ])
  t.same(refused({ query: 'fieldManager=a%07b' }), [
    'fieldManager: Invalid value: "a\\u0007b": invalid character U+0007 (at position 1)',
  ])
  const kindOf = (verb: NonNullable<Asked['verb']>) => {
    try {
      write({ verb, query: 'fieldManager=%07' })
    } catch (error) {
      return error instanceof Error ? error.message.split(' ')[0] : error
    }
    return undefined
  }
  t.same((['create', 'update', 'patch'] as const).map(kindOf), [
    ...['CreateOptions.meta.k8s.io', 'UpdateOptions.meta.k8s.io', 'PatchOptions.meta.k8s.io'],
  ])
})

const entry = (manager: string, fieldsV1: object): ManagedFieldsEntry => ({
  ...{ manager, operation: 'Update', apiVersion: 'v1', time: '2025-01-01T00:00:00Z', fieldsType: 'FieldsV1', fieldsV1 },
})
type Settings = { readonly [key: string]: string }
const map = (
  data: Settings,
  managedFields?: readonly ManagedFieldsEntry[],
): AnyObject & { readonly data: Settings } => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'web', namespace: 'default', ...(managedFields && { managedFields }) },
  data,
})
/** The managers after `ann` set `b`, by name. */
const after = (given: readonly ManagedFieldsEntry[] | undefined, subresource = '') => {
  const before = map({ a: '1' }, [entry('eve', { 'f:data': { 'f:a': {} } })])
  const asked = { query: 'fieldManager=ann', resource: 'configmaps', subresource } as const
  const { managedFields, areDispensable } = updatedManagers(before, given, write(asked))
  return { names: managedFields(map({ a: '1', b: '2' })).map(({ manager }) => manager), areDispensable }
}

test('an update keeps the managers of an object, unless its author changes or removes them', async (t) => {
  t.same(after(undefined), { names: ['eve', 'ann'], areDispensable: true })
  t.same(after([entry('bob', { 'f:data': { 'f:a': {} } })]).names, ['bob', 'ann'])
  for (const none of [[], [{}]]) t.same(after(none).names, [], 'without them until its first apply')
  const unreadable = [
    { ...entry('bob', {}), fieldsType: 'FieldsV2' },
    { ...entry('bob', {}), apiVersion: '' },
    { ...entry('bob', {}), operation: 'Write' },
  ]
  for (const one of unreadable) t.same(after([one]).names, ['eve', 'ann'], JSON.stringify(one))
  t.same(after([entry('bob', { 'f:data': { 'f:a': {} } })], 'status').names, ['eve', 'ann'], 'of the object only')
})

test('the author of a new object manages what it sets', async (t) => {
  const { managedFields } = updatedManagers(
    undefined,
    undefined,
    write({ query: 'fieldManager=ann', resource: 'configmaps' }),
  )
  t.same(managedFields(map({ a: '1' })), [
    {
      ...{
        manager: 'ann',
        operation: 'Update',
        apiVersion: 'v1',
        time: '2026-01-01T00:00:00Z',
        fieldsType: 'FieldsV1',
      },
      fieldsV1: { 'f:data': { '.': {}, 'f:a': {} } },
    },
  ])
})
