import { test } from 'tap'
import { DeleteOptionsSchema } from '../../../api/deletion/delete-options.ts'
import { PriorityClassSchema } from '../../../api/priority-class.ts'
import { builtInResources } from '../../../api/resources.ts'
import {
  integer,
  keywordsOf,
  field as numbered,
  object,
  oneOf,
  optional,
  type TSchema,
  text,
  time,
} from '../../../api/schema.ts'
import { anApi } from '../../testing/api-in-memory.ts'
import { ProtobufError, readProtobuf } from './protobuf.ts'

/** Written as Go writes it: `field(1, 'text')`, `field(2, 5)`, `field(3, field(1, 'inside'))`. */
const varint = (value: bigint): readonly number[] =>
  value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varint(value >> 7n)]
const field = (number: number, value: string | number | Buffer): Buffer => {
  if (typeof value === 'number')
    return Buffer.from([...varint(BigInt(number << 3)), ...varint(BigInt.asUintN(64, BigInt(value)))])
  const bytes = Buffer.from(value)
  return Buffer.concat([Buffer.from([...varint(BigInt((number << 3) | 2)), ...varint(BigInt(bytes.length))]), bytes])
}
const message = (...fields: readonly Buffer[]) => Buffer.concat(fields)
const envelope = (apiVersion: string, kind: string, raw: Buffer) =>
  message(
    Buffer.from('k8s\0'),
    field(1, message(field(1, apiVersion), field(2, kind))),
    field(2, raw),
    field(3, ''),
    field(4, ''),
  )
const schemaOf = (apiVersion: string, kind: string) =>
  builtInResources.ofKind(apiVersion, kind)?.schema ?? DeleteOptionsSchema
const read = (apiVersion: string, kind: string, raw: Buffer) =>
  readProtobuf(envelope(apiVersion, kind, raw), schemaOf(apiVersion, kind))
const entry = (key: string, value: string) => message(field(1, key), field(2, value))

test('absent fields are left out, fields set to their zero value are kept', async (t) => {
  const metadata = message(field(1, 'web'), field(2, ''), field(3, 'default'), field(7, 0), field(8, ''))
  const budget = message(
    field(1, metadata),
    field(2, message(field(1, message(field(1, 0), field(2, 0), field(3, ''))), field(2, ''))),
  )
  t.same(read('policy/v1', 'PodDisruptionBudget', budget), {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'default' },
    spec: { minAvailable: 0, selector: {} },
  })
  const half = message(field(2, message(field(3, message(field(1, 1), field(2, 0), field(3, '50%'))))))
  t.match(read('policy/v1', 'PodDisruptionBudget', half), { spec: { maxUnavailable: '50%' } })
  t.same(read('v1', 'DeleteOptions', message(field(1, 0), field(4, 'Background'))), {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    gracePeriodSeconds: 0,
    propagationPolicy: 'Background',
  })
})

test('a raw extension is JSON of any shape, within the limits of a body', async (t) => {
  const revision = (raw: string) => read('apps/v1', 'ControllerRevision', message(field(2, field(1, raw)), field(3, 4)))
  t.match(revision('{"spec":{"replicas":[1,null]}}'), { data: { spec: { replicas: [1, null] } }, revision: 4 })
  t.throws(() => revision('{'), ProtobufError)
  t.throws(() => revision('['.repeat(5000)), /more than 100 levels/)
  t.throws(() => revision(`[${'1,'.repeat(20_000)}1]`), /more than 16384 fields and items/)
})

test('maps, bytes, times, quantities and what stands inside others come as in JSON', async (t) => {
  const secret = message(
    field(
      1,
      message(field(1, 's'), field(11, entry('a', '1')), field(11, entry('b', '')), field(9, field(1, 1767225600))),
    ),
    field(2, entry('key', 'value')),
    field(2, entry('empty', '')),
    field(3, 'Opaque'),
  )
  t.same(read('v1', 'Secret', secret), {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's', labels: { a: '1', b: '' }, deletionTimestamp: '2026-01-01T00:00:00Z' },
    data: { key: 'dmFsdWU=', empty: '' },
    type: 'Opaque',
  })
  const volume = message(field(1, 'v'), field(2, field(2, message(field(1, ''), field(2, field(1, '64Mi'))))))
  const limit = message(field(1, 'memory'), field(2, field(1, '1Gi')))
  const container = message(field(1, 'main'), field(3, 'sh'), field(3, ''), field(8, field(1, limit)))
  const spec = message(field(1, volume), field(2, container), field(4, 0), field(25, -5))
  t.same(read('v1', 'Pod', message(field(2, spec)))['spec'], {
    volumes: [{ name: 'v', emptyDir: { sizeLimit: '64Mi' } }],
    containers: [{ name: 'main', command: ['sh', ''], resources: { limits: { memory: '1Gi' } } }],
    terminationGracePeriodSeconds: 0,
    priority: -5,
  })
  const lease = message(field(2, field(4, message(field(1, 1767225600), field(2, 123456789)))))
  t.match(read('coordination.k8s.io/v1', 'Lease', lease), {
    spec: { renewTime: '2026-01-01T00:00:00.123456Z' },
  })
})

test('a trust bundle of a volume is decoded, so that it is refused, and the configSource and status of a node are kept', async (t) => {
  const bundle = message(field(5, message(field(4, 'ca.pem'))))
  for (const source of [bundle, message(field(5, ''))]) {
    const volume = message(field(1, 'v'), field(2, field(26, message(field(1, source)))))
    t.match(read('v1', 'Pod', message(field(2, message(field(1, volume)))))['spec'], {
      volumes: [{ name: 'v', projected: { sources: [{ clusterTrustBundle: String }] } }],
    })
  }
  const configMap = message(field(1, 'default'), field(2, 'settings'), field(5, 'kubelet'))
  const node = message(
    field(1, field(1, 'pi-1')),
    field(2, message(field(1, '10.0.0.0/24'), field(6, field(2, configMap)))),
  )
  t.same(read('v1', 'Node', node)['spec'], {
    podCIDR: '10.0.0.0/24',
    configSource: { configMap: { namespace: 'default', name: 'settings', kubeletConfigKey: 'kubelet' } },
  })
  const ready = message(field(1, 'Ready'), field(2, 'True'), field(3, field(1, 1767225600)), field(4, ''), field(5, ''))
  const status = message(
    ...[field(1, message(field(1, 'cpu'), field(2, field(1, '4')))), field(4, ready), field(6, field(1, field(1, 0)))],
    ...[field(7, message(...Array.from({ length: 10 }, (_, i) => field(i + 1, i === 9 ? 'arm64' : ''))))],
    ...[field(8, message(field(1, 'image:1'), field(1, 'image:2'), field(2, 5)))],
  )
  const nodeInfo = { machineID: '', systemUUID: '', bootID: '', kernelVersion: '', osImage: '', architecture: 'arm64' }
  const versions = { containerRuntimeVersion: '', kubeletVersion: '', kubeProxyVersion: '', operatingSystem: '' }
  t.same(read('v1', 'Node', field(3, status))['status'], {
    capacity: { cpu: '4' },
    conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-01T00:00:00Z' }],
    daemonEndpoints: { kubeletEndpoint: { Port: 0 } },
    nodeInfo: { ...nodeInfo, ...versions },
    images: [{ names: ['image:1', 'image:2'], sizeBytes: 5 }],
  })
})

test('any bytes are decoded or rejected with a ProtobufError', async (t) => {
  const whole = envelope('v1', 'ConfigMap', message(field(1, field(1, 'settings')), field(2, entry('a', '1'))))
  for (let length = 0; length < whole.length; length++) {
    try {
      readProtobuf(whole.subarray(0, length), schemaOf('v1', 'ConfigMap'))
    } catch (error) {
      if (!(error instanceof ProtobufError)) t.fail(`${length} bytes`, { error })
    }
  }
  let seed = 1
  const random = () => (seed = (seed * 48271) % 0x7fffffff)
  for (let round = 0; round < 3000; round++) {
    const bytes = Buffer.from(whole)
    for (let change = 0; change < 1 + (round % 4); change++) bytes[random() % bytes.length] = random() % 256
    try {
      readProtobuf(bytes, schemaOf('v1', 'ConfigMap'))
    } catch (error) {
      if (!(error instanceof ProtobufError)) t.fail(bytes.toString('hex'), { error })
    }
  }
  const unnumbered = object({ name: text })
  t.throws(() => readProtobuf(envelope('v1', 'Nothing', Buffer.alloc(0)), unnumbered), ProtobufError)
  const many = Buffer.concat(Array.from({ length: 5_000 }, () => field(2, entry('a', '1'))))
  t.match(read('v1', 'ConfigMap', many), { data: { a: '1' } }, 'in time that grows with its length')
})

test('every kind that is served has field numbers', async (t) => {
  for (const { group, version, kind, schema } of builtInResources.all) {
    const apiVersion = group === '' ? version : `${group}/${version}`
    const raw = message(field(1, message(field(1, 'it'), field(11, entry('a', '1')))))
    t.same(
      readProtobuf(envelope(apiVersion, kind, raw), schema),
      { apiVersion, kind, metadata: { name: 'it', labels: { a: '1' } } },
      kind,
    )
  }
})

test('the schemas of a definition come as in JSON, whatever is in them', async (t) => {
  const json = (text: string) => field(1, text)
  const double = Buffer.concat([Buffer.from([(9 << 3) | 1]), Buffer.from(new Float64Array([2.5]).buffer)])
  const name = message(
    field(5, 'string'),
    field(8, json('"a"')),
    field(13, 0),
    field(20, json('"a"')),
    field(20, json('null')),
  )
  const spec = message(
    ...[field(5, 'object'), field(37, 0), field(38, 1), field(42, ''), field(23, 'name')],
    field(29, message(field(1, 'name'), field(2, name))),
    field(29, message(field(1, 'size'), field(2, message(field(5, 'integer'), double)))),
    field(29, message(field(1, 'list'), field(2, field(24, field(1, field(5, 'string')))))),
    field(29, message(field(1, 'lists'), field(2, field(24, field(2, field(5, 'string')))))),
    field(29, message(field(1, 'open'), field(2, field(30, message(field(1, 1)))))),
    field(29, message(field(1, 'closed'), field(2, field(30, message(field(1, 0)))))),
    field(29, message(field(1, 'map'), field(2, field(30, message(field(1, 1), field(2, field(5, 'string'))))))),
    field(32, message(field(1, 'a'), field(2, field(2, 'b')))),
    field(44, message(field(1, 'self.size > 0'), field(4, 'FieldValueInvalid'), field(6, 0))),
  )
  const schema = message(
    field(5, 'object'),
    field(28, message(field(4, 'inner'))),
    field(29, message(field(1, 'spec'), field(2, spec))),
  )
  const version = message(field(1, 'v1'), field(2, 1), field(3, 1), field(4, field(1, schema)))
  const definition = read('apiextensions.k8s.io/v1', 'CustomResourceDefinition', field(2, field(7, version)))
  t.same((definition['spec'] as { versions: object }).versions, [
    {
      name: 'v1',
      served: true,
      storage: true,
      schema: {
        openAPIV3Schema: {
          type: 'object',
          not: { description: 'inner' },
          properties: {
            spec: {
              type: 'object',
              'x-kubernetes-preserve-unknown-fields': true,
              'x-kubernetes-list-type': '',
              required: ['name'],
              dependencies: { a: ['b'] },
              'x-kubernetes-validations': [
                { rule: 'self.size > 0', reason: 'FieldValueInvalid', optionalOldSelf: false },
              ],
              properties: {
                name: { type: 'string', default: 'a', maxLength: 0, enum: ['a', null] },
                size: { type: 'integer', maximum: 2.5 },
                list: { items: { type: 'string' } },
                lists: { items: [{ type: 'string' }] },
                open: { additionalProperties: true },
                closed: { additionalProperties: false },
                map: { additionalProperties: { type: 'string' } },
              },
            },
          },
        },
      },
    },
  ])
  const nested = (levels: number): Buffer => (levels === 0 ? field(5, 'object') : field(28, nested(levels - 1)))
  const deep = (levels: number) => () =>
    read('apiextensions.k8s.io/v1', 'CustomResourceDefinition', field(2, field(7, field(4, field(1, nested(levels))))))
  t.doesNotThrow(deep(150))
  t.throws(deep(1_000), new ProtobufError('The message has more than 200 levels'))
})

test('of an object of another kind only apiVersion and kind are read', async (t) => {
  const pod = envelope('v1', 'Pod', message(field(1, field(1, 'web'))))
  t.same(readProtobuf(pod, PriorityClassSchema), { apiVersion: 'v1', kind: 'Pod' })
})

test('in a status the numbers, booleans and texts that are required keep their zero', async (t) => {
  const allowed = message(field(1, 0), field(3, 0), field(4, 2), field(5, 0), field(6, 0))
  t.same(read('policy/v1', 'PodDisruptionBudget', message(field(1, field(1, 'web')), field(3, allowed))), {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web' },
    status: { disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 0, expectedPods: 0 },
  })
  const ended = message(field(1, 0), field(2, 0), field(3, 'Completed'), field(5, ''), field(6, field(1, 1767225600)))
  const container = message(
    field(1, 'main'),
    field(2, field(3, ended)),
    field(3, ''),
    field(4, 0),
    field(5, 0),
    field(6, 'web:1'),
    field(7, ''),
    field(8, ''),
    field(9, 0),
  )
  const status = message(field(1, 'Succeeded'), field(3, ''), field(8, container), field(12, field(1, '10.1.0.2')))
  t.match(read('v1', 'Pod', message(field(3, status))), {
    status: {
      phase: 'Succeeded',
      message: undefined,
      podIPs: [{ ip: '10.1.0.2' }],
      containerStatuses: [
        {
          name: 'main',
          state: { terminated: { exitCode: 0, reason: 'Completed', finishedAt: '2026-01-01T00:00:00Z' } },
          lastState: {},
          ready: false,
          restartCount: 0,
          image: 'web:1',
          imageID: '',
          containerID: undefined,
          started: false,
        },
      ],
    },
  })
})

test('the texts that an object must have are read as they are in JSON; a time or a word of a list that is empty is absent', async (t) => {
  const [word, when] = [oneOf('Yes', 'No'), time]
  const schema = object({
    apiVersion: oneOf('v1'),
    kind: oneOf('It'),
    name: numbered(1, text),
    note: numbered(2, optional(text)),
    answer: numbered(3, word),
    at: numbered(4, when),
    count: numbered(5, optional(integer)),
  })
  const raw = message(field(1, ''), field(2, ''), field(3, ''), field(4, ''), field(5, 0))
  t.same(readProtobuf(envelope('v1', 'It', raw), schema), { apiVersion: 'v1', kind: 'It', name: '' })
})

test('a field of a served kind without a number is one that Go does not send', async (t) => {
  const missing: string[] = []
  const walk = (schema: TSchema, path: string) => {
    const {
      properties = {},
      items,
      patternProperties = {},
      'x-bramble-field-numbers': numbers = {},
    } = keywordsOf(schema)
    for (const [name, inner] of Object.entries(properties)) {
      if (numbers[name] === undefined) missing.push(`${path}.${name}`)
      walk(inner, `${path}.${name}`)
    }
    for (const inner of [items, ...Object.values(patternProperties)]) if (inner !== undefined) walk(inner, path)
  }
  for (const { kind, schema } of builtInResources.all) walk(schema, kind)
  const typeOrMeta = /^\w+(\.spec\.volumeClaimTemplates)?\.(apiVersion|kind)$|\.metadata\.(managedFields|selfLink)/
  t.same(
    missing.filter((path) => !typeOrMeta.test(path)),
    [],
  )
})

test('a body in protobuf is as good as one in JSON', async (t) => {
  const { ask, store } = await anApi(t)
  const type = 'application/vnd.kubernetes.protobuf'
  const map = message(field(1, field(1, 'settings')), field(2, entry('a', '1')))
  const created = await ask('POST', '/api/v1/namespaces/default/configmaps?fieldValidation=Strict', {
    type,
    body: envelope('v1', 'ConfigMap', map),
  })
  t.match(created, { code: 201, body: { data: { a: '1' } } })
  const body = envelope('v1', 'DeleteOptions', field(5, 'All'))
  t.match(await ask('DELETE', '/api/v1/namespaces/default/configmaps/settings', { type, body }), { code: 200 })
  t.ok(await store.get('configmaps', { namespace: 'default', name: 'settings' }), 'it was a rehearsal')
  const condition = message(field(1, 'Tested'), field(2, 'True'), field(5, 'Suite'))
  const namespace = message(field(1, field(1, 'default')), field(3, message(field(1, 'Active'), field(2, condition))))
  const status = { type, body: envelope('v1', 'Namespace', namespace) }
  t.match(await ask('PUT', '/api/v1/namespaces/default/status', status), {
    code: 200,
    body: { status: { phase: 'Active', conditions: [{ type: 'Tested', status: 'True', reason: 'Suite' }] } },
  })
  t.match(await ask('POST', '/api/v1/namespaces', { type, body: Buffer.from('{}') }), { code: 415 })
})

test('a definition in protobuf may have as many values as in JSON, beside the fields that Go writes empty', async (t) => {
  const { ask } = await anApi(t)
  const empty = (count: number) => Buffer.concat(Array.from({ length: count }, () => field(6, '')))
  const definition = (fields: number) => {
    const schema = message(field(5, 'object'), field(38, 1), empty(fields))
    const version = message(field(1, 'v1'), field(2, 1), field(3, 1), field(4, field(1, schema)))
    const names = message(field(1, 'shops'), field(2, ''), field(4, 'Shop'))
    const spec = message(field(1, 'example.com'), field(3, names), field(4, 'Namespaced'), field(7, version))
    const metadata = field(1, 'shops.example.com')
    return envelope('apiextensions.k8s.io/v1', 'CustomResourceDefinition', message(field(1, metadata), field(2, spec)))
  }
  const post = (body: Buffer) =>
    ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      type: 'application/vnd.kubernetes.protobuf',
      body,
    })
  t.match(await post(definition(300_000)), { code: 413 })
  t.match(await post(definition(100_000)), {
    code: 201,
    body: {
      spec: {
        versions: [{ schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } } }],
      },
    },
  })
})
