import { test } from 'tap'
import { NodeSchema } from '../../../api/node.ts'
import { PodSchema } from '../../../api/pod.ts'
import type { JsonObject } from '../../../api/text/json.ts'
import { growth, linearAtMost } from '../../../daemon/testing/growth.ts'
import { refusal } from '../../testing/refusal.ts'
import { strategicMergePatch } from './strategic-merge-patch.ts'

const named = (...names: string[]) => names.map((name) => ({ name }))
const podWith = (spec: JsonObject) => ({ metadata: { name: 'web' }, spec })
const patched = (spec: JsonObject, patch: JsonObject) => {
  const pod = strategicMergePatch(PodSchema, podWith(spec), { spec: patch })
  return (pod as { spec: JsonObject }).spec
}
const containerNames = (spec: JsonObject) => (spec['containers'] as { name: string }[]).map(({ name }) => name)

test('maps merge, null deletes, plain lists are replaced', async (t) => {
  const spec = patched(
    {
      nodeSelector: { disk: 'ssd', zone: 'a' },
      containers: [{ name: 'a', image: 'i', command: ['x', 'y'], tty: true }],
    },
    { nodeSelector: { zone: null, arch: 'arm64' }, containers: [{ name: 'a', command: ['z'], tty: null }] },
  )
  t.same(spec, {
    nodeSelector: { disk: 'ssd', arch: 'arm64' },
    containers: [{ name: 'a', image: 'i', command: ['z'] }],
  })
})

test('lists with a key merge item by item, down to the ports and the environment', async (t) => {
  const container = {
    name: 'a',
    ports: [{ containerPort: 80, name: 'http' }],
    env: [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
    ],
  }
  const spec = patched(
    { containers: [container] },
    {
      containers: [
        { name: 'a', ports: [{ containerPort: 80, hostPort: 8080 }], env: [{ name: 'A', $patch: 'delete' }] },
        { name: 'b', image: 'new' },
      ],
      '$setElementOrder/containers': named('a', 'b'),
    },
  )
  t.same(spec['containers'], [
    { name: 'a', ports: [{ containerPort: 80, name: 'http', hostPort: 8080 }], env: [{ name: 'B', value: '2' }] },
    { name: 'b', image: 'new' },
  ])
})

test('taints and tolerations are replaced whole', async (t) => {
  const taint = (key: string) => ({ key, effect: 'NoSchedule' })
  const node = { metadata: { name: 'pi' }, spec: { taints: [taint('a'), taint('b')] } }
  t.same(strategicMergePatch(NodeSchema, node, { spec: { taints: [taint('c')] } }), {
    ...node,
    spec: { taints: [taint('c')] },
  })
  t.same(strategicMergePatch(NodeSchema, node, { spec: { taints: null } }), { ...node, spec: {} })
  t.same(patched({ tolerations: [{ key: 'a' }] }, { tolerations: [{ key: 'b', value: null }] }), {
    tolerations: [{ key: 'b' }],
  })
})

test('an object can be replaced or emptied', async (t) => {
  t.same(patched({ nodeSelector: { a: '1' } }, { nodeSelector: { $patch: 'replace', b: '2', c: null } }), {
    nodeSelector: { b: '2' },
  })
  t.same(patched({ nodeSelector: { a: '1' } }, { nodeSelector: { $patch: 'delete' } }), { nodeSelector: {} })
  t.equal(
    refusal(() => patched({}, { nodeSelector: { $patch: 'merge' } })),
    'BadRequest',
  )
  t.equal(
    refusal(() => patched({}, { containers: [{ name: 'a', $patch: 'merge' }] })),
    'BadRequest',
  )
})

test('a list with a key can be replaced whole: two addresses may share a type', async (t) => {
  const address = (type: string, text: string) => ({ type, address: text })
  const node = { status: { addresses: [address('InternalIP', '192.0.2.1'), address('Hostname', 'pi')] } }
  const addresses = [address('InternalIP', '192.0.2.2'), address('Hostname', 'pi')]
  t.same(strategicMergePatch(NodeSchema, node, { status: { addresses: [{ $patch: 'replace' }, ...addresses] } }), {
    status: { addresses },
  })
})

test('items of a replaced list that share a key all stay, in the order in which they are given', async (t) => {
  const address = (type: string, text: string) => ({ type, address: text })
  const node = { status: { addresses: [address('InternalIP', '192.0.2.1')] } }
  const addresses = [
    address('InternalIP', '192.0.2.2'),
    address('Hostname', 'pi'),
    address('InternalIP', '2001:db8::2'),
  ]
  t.same(strategicMergePatch(NodeSchema, node, { status: { addresses: [...addresses, { $patch: 'replace' }] } }), {
    status: { addresses },
  })
})

test('a deletion applies to what was there, wherever in the list it stands', async (t) => {
  const spec = { containers: [{ name: 'a', image: 'old', tty: true }] }
  t.same(
    patched(spec, {
      containers: [
        { name: 'a', image: 'new' },
        { name: 'a', $patch: 'delete' },
      ],
    }),
    {
      containers: [{ name: 'a', image: 'new' }],
    },
  )
})

test('the cost of keys, keyed items and plain items grows with their number, not with its square', async (t) => {
  const cases: { readonly [what: string]: (size: number) => readonly [JsonObject, JsonObject] } = {
    keys: (size) => [{}, { nodeSelector: Object.fromEntries(names(size).map((name) => [name, 'v'])) }],
    'keyed items': (size) => [{ volumes: named(...names(size)) }, { volumes: named(...names(2 * size)) }],
    'ordered items': (size) => [
      { volumes: named(...names(size)) },
      { volumes: [], '$setElementOrder/volumes': named(...names(size).toReversed()) },
    ],
    'deleted items': (size) => [
      { volumes: named(...names(size)) },
      { volumes: names(size).map((name) => ({ name, $patch: 'delete' })) },
    ],
  }
  for (const [what, build] of Object.entries(cases)) {
    const cost = growth(500, (size) => {
      const [spec, patch] = build(size)
      return () => patched(spec, patch)
    })
    t.ok(cost < linearAtMost, `${what}: ${cost} times for 8 times the number`)
  }
  const finalizers = growth(500, (size) => {
    const [old, given] = [names(size), names(2 * size)]
    const patch = { metadata: { finalizers: given, '$deleteFromPrimitiveList/finalizers': old.slice(0, size / 2) } }
    return () => strategicMergePatch(PodSchema, { metadata: { finalizers: old } }, patch)
  })
  t.ok(finalizers < linearAtMost, `finalizers: ${finalizers} times for 8 times the number`)
})

const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`)

test('$retainKeys drops what it does not name', async (t) => {
  const volumes = [{ name: 'v', emptyDir: { medium: 'Memory' } }]
  const hostPath = { path: '/srv' }
  t.same(patched({ volumes }, { volumes: [{ name: 'v', $retainKeys: ['name', 'hostPath'], hostPath }] }), {
    volumes: [{ name: 'v', hostPath }],
  })
  t.equal(
    refusal(() => patched({ volumes }, { volumes: [{ name: 'v', $retainKeys: ['name'], hostPath }] })),
    'BadRequest',
  )
})

test('lists of plain values merge as sets', async (t) => {
  const pod = (...finalizers: string[]) => ({ metadata: { finalizers } })
  const after = (patch: JsonObject) => strategicMergePatch(PodSchema, pod('a', 'b'), { metadata: patch })
  t.same(after({ finalizers: ['b', 'c'] }), pod('a', 'b', 'c'))
  t.same(after({ '$deleteFromPrimitiveList/finalizers': ['a'] }), pod('b'))
  t.same(after({ finalizers: ['c'], '$deleteFromPrimitiveList/finalizers': ['a'] }), pod('c', 'b'))
  t.same(after({ '$setElementOrder/finalizers': ['b', 'a'] }), pod('b', 'a'))
})

test('the order of a list follows the patch, and what it does not name keeps its neighbours', async (t) => {
  const order = (before: string[], patch: JsonObject) =>
    containerNames(patched({ containers: named(...before) }, patch)).join('')
  const set = (...names: string[]) => ({ '$setElementOrder/containers': named(...names) })
  t.equal(order(['a', 'b', 'c'], { containers: named('c', 'a') }), 'bca', 'b stood before c, and so stays')
  t.equal(order(['a', 'b'], { containers: named('n') }), 'nab', 'wholly new: in front')
  t.equal(order(['a', 'b'], { containers: named('b', 'n') }), 'abn')
  t.equal(order(['a', 'b', 'c'], set('c', 'b', 'a')), 'cba')
  t.equal(order(['a', 'x', 'b'], { ...set('b', 'n', 'a'), containers: named('n') }), 'xbna')
  t.equal(order(['a', 'b'], { ...set('a'), containers: [{ name: 'b', $patch: 'delete' }] }), 'a')
  t.equal(
    refusal(() => order(['a'], { ...set('a'), containers: named('b') })),
    'BadRequest',
  )
})

test('an invalid strategic merge patch is a BadRequest', async (t) => {
  t.equal(
    refusal(() => patched({}, { containers: [{ image: 'x' }] })),
    'BadRequest',
  )
  t.equal(
    refusal(() => patched({}, { containers: ['x'] })),
    'BadRequest',
  )
  t.equal(
    refusal(() => patched({}, { '$setElementOrder/containers': 'x', containers: [] })),
    'BadRequest',
  )
  t.equal(
    refusal(() => strategicMergePatch(PodSchema, {}, [])),
    'BadRequest',
  )
  t.equal(
    refusal(() => strategicMergePatch(PodSchema, {}, JSON.parse('{"__proto__":{"a":1}}'))),
    'BadRequest',
  )
})
