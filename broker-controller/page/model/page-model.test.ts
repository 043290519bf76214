import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { chartPath } from './chart-path.ts'
import { drainVerdict } from './drain.ts'
import { emptyFleet, fleetAfter } from './fleet-state.ts'
import { joinFile, joinLine } from './join-texts.ts'
import { logLines } from './log-lines.ts'
import { hrefOf, isFound, listPlace, placeOf } from './places.ts'
import { podLevel, shownPods } from './pod-view.ts'
import { columnsIn, drawnRows } from './virtual-rows.ts'
import { ago, byteText, counted, duration } from './words.ts'

test('an update changes the cards that it names, and a reset forgets all', async (t) => {
  const node = { name: 'pi-1', state: 'ready', pods: 0 } as const
  const first = fleetAfter(emptyFleet, { nodes: { put: [node] }, complete: true })
  t.equal(first.nodes.get('pi-1'), node)
  const second = fleetAfter(first, { usage: { 'pi-1': [1, 2, 3, 4, 5, 6] } })
  t.equal(second.nodes, first.nodes, 'a map without a change stays the same')
  t.same(second.usage.get('pi-1'), [1, 2, 3, 4, 5, 6])
  t.equal(fleetAfter(second, { nodes: { gone: ['pi-1'] } }).nodes.size, 0)
  const rights = { nodes: true, usage: false, requests: false, pods: false, events: false, workloads: false }
  t.match(fleetAfter(second, { reset: rights }), { isComplete: false, rights })
})

test('every place has an address that leads back to it', async (t) => {
  const places = [
    { view: 'node', name: 'pi-1' },
    { view: 'pod', namespace: 'default', name: 'web' },
    { view: 'logins' },
    listPlace('map'),
    { view: 'pods', search: 'a b&c', filters: { namespace: 'shop' } },
  ] as const
  for (const place of places) t.same(placeOf(hrefOf(place)), place)
  t.same(placeOf('#/nothing/%E0'), listPlace('fleet'))
  t.same(placeOf('#kiosk=id.secret').view, 'fleet')
  t.ok(isFound('B a', ['xa', undefined, 'yb']))
  t.notOk(isFound('a c', ['xa', 'yb']))
})

test('of a long list the rows in the window are drawn, and a few around it', async (t) => {
  t.same(drawnRows(1_000, 50, { scrollTop: 5_000, height: 500 }), { first: 96, end: 114, above: 4_800, total: 50_000 })
  t.same(drawnRows(3, 50, { scrollTop: 0, height: 500 }), { first: 0, end: 3, above: 0, total: 150 })
  t.same(drawnRows(3, 50, { scrollTop: 90_000, height: 500 }), { first: 3, end: 3, above: 150, total: 150 })
  t.equal(columnsIn(0, 290, 12), 1)
  t.equal(columnsIn(1224, 290, 12), 4)
})

test('a drain leaves what comes back, and asks about what does not', async (t) => {
  const owned = (kind: string) => {
    const pod = aPod({ name: 'web' })
    const owner = { apiVersion: 'apps/v1', kind, name: 'web', uid: 'u', controller: true }
    return { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } }
  }
  const bare = aPod({ name: 'web' })
  t.equal(drainVerdict(owned('ReplicaSet')).verdict, 'evict')
  t.equal(drainVerdict(owned('DaemonSet')).verdict, 'stay')
  t.equal(drainVerdict(bare).verdict, 'ask')
  t.equal(drainVerdict({ ...bare, status: { phase: 'Succeeded' } }).verdict, 'evict')
  const annotations = { 'kubernetes.io/config.mirror': 'hash' }
  t.equal(drainVerdict({ ...bare, metadata: { ...bare.metadata, annotations } }).verdict, 'stay')
})

test('pods that need attention come first', async (t) => {
  const pod = (name: string, status: string, phase = 'Running') => ({
    name,
    namespace: 'default',
    status,
    phase,
    ready: '0/1',
    version: '1',
  })
  const pods = [
    { ...pod('fine', 'Running'), isReady: true as const },
    pod('done', 'Completed', 'Succeeded'),
    pod('crash', 'CrashLoopBackOff'),
    pod('slow', 'Running'),
  ]
  t.same(
    shownPods(pods, '', {}).map(({ name }) => name),
    ['crash', 'slow', 'fine', 'done'],
  )
  t.same(
    shownPods(pods, '', { state: 'waiting' }).map(({ name }) => name),
    ['crash', 'slow'],
  )
  t.equal(podLevel(pod('lost', 'Running', 'Failed')), 'bad')
})

test('numbers and times are short', async (t) => {
  t.same([5, 65, 7_200, 200_000].map(duration), ['5 s', '1 min', '2 h', '2 d'])
  t.equal(ago(undefined, 10), '')
  t.same([512, 2_048, 4 * 2 ** 30, 15.5 * 2 ** 30].map(byteText), ['512 B', '2.0 KiB', '4.0 GiB', '16 GiB'])
  t.same([counted(1, 'pod'), counted(2, 'pod')], ['1 pod', '2 pods'])
})

test('lines of a log come in pieces, and one without an end does not grow', async (t) => {
  t.same(logLines('', 'one\ntw'), { lines: ['one'], rest: 'tw' })
  t.same(logLines('tw', 'o\n\n'), { lines: ['two', ''], rest: '' })
  let rest = ''
  for (let piece = 0; piece < 10; piece++) rest = logLines(rest, 'x'.repeat(1_000)).rest
  t.equal(rest.length, 4_097)
  t.same(logLines(rest, 'y\nz').lines, [`${'x'.repeat(4_096)}…`])
})

test('a chart has gaps where nothing is known', async (t) => {
  const size = { width: 30, height: 10, top: 100 }
  t.equal(chartPath([0, 50, null, 100], size), 'M0 10L10 5M30 0h1')
  t.equal(chartPath([null, null], size), '')
  t.equal(chartPath([200], size), 'M0 0h1', 'values beyond the scale are clipped')
})

test('a machine joins with the printed command or with the file', async (t) => {
  const facts = {
    server: 'https://10.0.0.1:6443',
    caHash: 'sha256:00',
    token: { id: 'abcdef', secret: '0123456789abcdef' },
  }
  const line = 'bramble-agent join https://10.0.0.1:6443 --token abcdef.0123456789abcdef --ca-hash sha256:00'
  t.equal(joinLine(facts), `sudo ${line}`)
  t.equal(joinFile(facts), `join: ${line}\n`)
})
