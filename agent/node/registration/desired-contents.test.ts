import { type Test, test } from 'tap'
import { type Desired, decodeReceivedDesired } from '../../../api/desired.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { desiredContents } from './desired-contents.ts'

const configMap = (name: string) =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data: { name } }) as const
const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace: 'default' } } as const
const [web, db] = [aPod({ name: 'web' }), aPod({ name: 'db' })]
const names = { pods: ['p-web', 'p-db'], configMaps: ['c-a', 'c-b'], secrets: ['s'] }
const whole = {
  epoch: 'one',
  version: 1,
  pods: [web, db],
  configMaps: [configMap('a'), configMap('b')],
  secrets: [secret],
  names,
}
const references = (version: number, more: object = {}) => ({ epoch: 'one', version, names, contents: {}, ...more })

/** As they arrive from the controller. */
function received(input: object) {
  const decoded = decodeReceivedDesired(structuredClone(input))
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.problems))
  return decoded.value
}

function node(t: Test, remembered?: Desired | Error) {
  const passed: Desired[] = []
  const reports: (readonly string[] | undefined)[] = []
  const contents = desiredContents({
    async remembered() {
      if (remembered instanceof Error) throw remembered
      return remembered && { desired: remembered }
    },
    desired: (message) => void passed.push(message),
    report: () => void reports.push(contents.heldContents()),
    log: quietLog(t, 'The contents of the checkpoint are not used'),
  })
  const loaded = () => new Promise((resolve) => setImmediate(resolve))
  return { contents, passed, reports, loaded }
}

test('contents of the last message are not needed in the next one', async (t) => {
  const { contents, passed, loaded } = node(t)
  await loaded()
  contents.desired(received(whole))
  const third = aPod({ name: 'third' })
  const next = { ...names, pods: ['p-db', 'p-third'], configMaps: ['c-b'] }
  contents.desired(received(references(2, { names: next, contents: { 'p-third': third }, podCIDR: '10.64.1.0/24' })))
  t.same(passed[1], {
    ...{
      epoch: 'one',
      version: 2,
      podCIDR: '10.64.1.0/24',
      pods: [db, third],
      configMaps: [configMap('b')],
      secrets: [secret],
    },
    names: next,
  })
  t.equal(passed[1]?.pods[0], passed[0]?.pods[1], 'it is the same object, which is not compared or hashed again')
  t.same(contents.heldContents(), ['p-db', 'p-third', 'c-b', 's'], 'others are forgotten')
})

test('contents of the checkpoint are not needed, and a message waits until it is read', async (t) => {
  const { contents, passed, reports, loaded } = node(t, received(whole))
  t.equal(contents.heldContents(), undefined)
  contents.desired(received(references(2)))
  t.same(passed, [])
  await loaded()
  t.match(passed, [{ version: 2, pods: [web, db], configMaps: [{}, {}], secrets: [{}] }])
  t.same(reports, [['p-web', 'p-db', 'c-a', 'c-b', 's']], 'once it is read')
})

test('a message with unknown contents is not used, and what is held is reported', async (t) => {
  const { contents, passed, reports, loaded } = node(t)
  await loaded()
  contents.desired(received(whole))
  reports.length = 0
  const more = { ...names, pods: [...names.pods, 'p-unknown'] }
  contents.desired(received(references(2, { names: more })))
  t.equal(passed.length, 1, 'the pods stay as they are')
  t.same(reports, [['p-web', 'p-db', 'c-a', 'c-b', 's']])
  contents.desired(received(references(3, { names: more, contents: { 'p-unknown': aPod({ name: 'third' }) } })))
  t.match(passed[1], { version: 3, pods: { length: 3 } })
  t.equal(reports.length, 1)
})

test('a node without contents reports that it has none', async (t) => {
  const { contents, passed, reports, loaded } = node(t)
  contents.desired(received(references(1)))
  await loaded()
  t.same(reports, [[]])
  t.same(passed, [])
})

test('contents without names, of an earlier controller, are not reported', async (t) => {
  const { names: _, ...unnamed } = whole
  const { contents, passed, loaded } = node(t)
  await loaded()
  contents.desired(received(unnamed))
  t.same([contents.heldContents(), passed.length], [[], 1])
})

test('a controller that waits for the checkpoint takes away nothing', async (t) => {
  const { contents, passed, loaded } = node(t, received(whole))
  await loaded()
  contents.desired(received({ epoch: 'two', version: 1, pods: [], awaitsCheckpoint: true, names: { pods: [] } }))
  contents.desired(received(references(2, { epoch: 'two' })))
  t.match(passed, [{ awaitsCheckpoint: true }, { epoch: 'two', pods: { length: 2 } }])
})

test('a content that cannot be decoded is held by its name, and is not requested again and again', async (t) => {
  const { contents, passed, reports, loaded } = node(t)
  await loaded()
  reports.length = 0
  const strange = { ...db, spec: { containers: 'none' } }
  const sent = { 'p-web': web, 'p-db': strange, 'c-a': configMap('a'), 'c-b': configMap('b'), s: secret }
  contents.desired(received(references(1, { contents: sent })))
  contents.desired(received(references(2)))
  t.match(passed[1], { pods: [web], misread: [{ name: 'db', content: 'p-db' }], names: { pods: ['p-web'] } })
  t.same(reports, [])
  const { contents: other, loaded: otherLoaded } = node(t)
  await otherLoaded()
  other.desired(received({ ...whole, pods: [web, strange] }))
  t.same(other.heldContents()?.toSorted(), [...names.pods, ...names.configMaps, ...names.secrets].toSorted())
})

test('a checkpoint that cannot be read keeps no message back', async (t) => {
  const { contents, passed, reports, loaded } = node(t, new Error('EIO'))
  const sent = { 'p-web': web, 'p-db': db, 'c-a': configMap('a'), 'c-b': configMap('b'), s: secret }
  contents.desired(received(references(1, { contents: sent })))
  await loaded()
  contents.desired(received(references(2)))
  t.match(passed, [{ version: 1 }, { version: 2, pods: { length: 2 } }])
  t.same(reports, [['p-web', 'p-db', 'c-a', 'c-b', 's']])
})
