import { test } from 'tap'
import { nextPublications, nothingSent, stateBody, steadyState } from './publications.ts'

const settings = { publishIntervalMs: 30_000 }
const device = { discovery: '{"device":1}', state: { not_ready: false, cpu: 10 } }
const published = nextPublications(device, nothingSent, 1_000, settings).sent

test('a device is announced before its state, once', async (t) => {
  const { publications, sent } = nextPublications(device, nothingSent, 1_000, settings)
  t.same(publications, [
    { what: 'discovery', body: '{"device":1}' },
    { what: 'state', body: '{"not_ready":"OFF","cpu":10}' },
  ])
  t.same(nextPublications(device, sent, 2_000, settings), { publications: [], sent, dueMs: undefined })
  const renamed = nextPublications({ ...device, discovery: '{"device":2}' }, sent, 2_000, settings)
  t.same(renamed.publications, [{ what: 'discovery', body: '{"device":2}' }])
})

test('readings wait for their interval, and other changes do not', async (t) => {
  const warmer = { ...device, state: { not_ready: false, cpu: 20 } }
  t.match(nextPublications(warmer, published, 20_000, settings), { publications: [], dueMs: 31_000 })
  t.match(nextPublications(warmer, published, 31_000, settings), {
    publications: [{ body: '{"not_ready":"OFF","cpu":20}' }],
    dueMs: undefined,
  })
  const lost = { ...device, state: { not_ready: true, cpu: null } }
  t.match(nextPublications(lost, published, 2_500, settings), { publications: [], dueMs: 3_000 }, 'two seconds apart')
  t.match(nextPublications(lost, published, 3_000, settings).publications, [{ what: 'state' }])
  const often = { publishIntervalMs: 1_000 }
  t.match(nextPublications(lost, published, 2_000, often).publications, [{ what: 'state' }])
})

test('the counts of a rollout wait for the interval, and its pause does not', async (t) => {
  const of = (agents_percent: number | null, agents_summary: string) => ({
    discovery: device.discovery,
    state: { agents_percent, agents_summary },
  })
  const { sent } = nextPublications(of(3, '3 of 100'), nothingSent, 1_000, settings)
  t.match(nextPublications(of(3, '4 of 100'), sent, 20_000, settings), { publications: [], dueMs: 31_000 })
  t.match(nextPublications(of(null, 'Paused'), sent, 3_000, settings).publications, [{ what: 'state' }])
})

test('a value that comes or goes is a change', async (t) => {
  const fewer = { ...device, state: { not_ready: false } }
  t.match(nextPublications(fewer, published, 40_000, settings).publications, [{ body: '{"not_ready":"OFF"}' }])
})

test('noise of a reading is not a change, and does not add up unnoticed', async (t) => {
  const last = { cpu: 10, temperature: 40, pods: 1, last_boot: 1_000, load: 0.2 }
  t.same(steadyState(last, { cpu: 12, temperature: 41, pods: 2, last_boot: 1_119, load: 0.6 }), { ...last, pods: 2 })
  t.same(steadyState(last, { cpu: 13, temperature: 38 }), { cpu: 13, temperature: 38 })
  t.same(steadyState(last, { cpu: null }), { cpu: null })
  t.same(steadyState({ cpu: null }, { cpu: 1 }), { cpu: 1 }, 'the first value after a silence')
  t.same(steadyState(undefined, last), last)
})

test('a state is written as Home Assistant reads it', async (t) => {
  const body = stateBody({ a: true, b: false, c: null, d: 'x', e: 0.5, last_boot: 0 })
  t.equal(body, '{"a":"ON","b":"OFF","c":null,"d":"x","e":0.5,"last_boot":"1970-01-01T00:00:00.000Z"}')
  t.equal(stateBody({ last_boot: 1e300 }), '{"last_boot":null}', 'a node may report any time')
})
