import { test } from 'tap'
import { utc } from '../batch/time-zone.ts'
import { backupRules, baseOf, type DueFacts, dueBackup } from './backup-due.ts'
import type { LastBackup } from './volume-backup.ts'

const at = (text: string) => Date.parse(`2026-11-${text}:00Z`)
const time = (text: string) => `2026-11-${text}:00Z`
const due = (facts: Partial<DueFacts>) =>
  dueBackup({
    ...{ schedule: '0 3 * * *', isWanted: false, last: undefined, failure: undefined, zone: utc },
    ...{ createdMs: at('20T10:00'), nowMs: at('29T12:00'), ...facts },
  })

test('a backup is due at the first time after the last one, and once for all that were missed', async (t) => {
  const cases: readonly [Partial<DueFacts>, number | undefined][] = [
    [{}, at('21T03:00')],
    [{ createdMs: at('29T11:00') }, at('30T03:00')],
    [{ last: { time: time('29T03:00') } }, at('30T03:00')],
    [{ last: { time: time('25T04:00') } }, at('26T03:00')],
    [{ last: { time: '2036-01-01T00:00:00Z' } }, at('30T03:00')],
    [{ last: { time: 'x' } }, at('30T03:00')],
    [{ createdMs: Number.NaN }, at('30T03:00')],
    [{ schedule: undefined }, undefined],
    [{ schedule: undefined, isWanted: true }, at('29T12:00')],
    [{ isWanted: true, last: { time: time('29T03:00') } }, at('29T12:00')],
    [{ schedule: '0 3 30 2 *' }, undefined],
  ]
  for (const [facts, expected] of cases)
    t.same(due(facts), expected === undefined ? undefined : { atMs: expected }, JSON.stringify(facts))
  t.match(due({ schedule: 'daily' }), { problem: /bramble.dev\/backup is "daily": expected exactly 5 fields/ })
})

test('one that failed is tried again, less and less often', async (t) => {
  const failure = (count: number, text = '29T03:01') => ({ time: time(text), why: 'x', count })
  const last = { time: time('28T03:00') }
  t.same(due({ last, failure: failure(1) }), { atMs: at('29T03:11') })
  t.same(due({ last, failure: failure(3) }), { atMs: at('29T03:41') })
  t.same(due({ last, failure: failure(99) }), { atMs: at('29T09:01') })
  t.same(due({ last, failure: failure(1, '28T03:00') }), { atMs: at('29T03:00') }, 'it failed before the last one')
  t.same(due({ last, failure: failure(1, '30T03:00') }), { atMs: at('29T03:00') }, 'at a time that is to come')
})

test('the claim decides when and how, the volume and its class also where', async (t) => {
  const annotated = (annotations: Readonly<Record<string, string>>) => ({ metadata: { annotations } })
  const [to, when] = [{ 'bramble.dev/backup-to': 'pi-2:/mnt' }, { 'bramble.dev/backup': '@daily' }]
  const rules = (claim: object, volume: object, storageClass: object) =>
    backupRules({
      ...{ claim: annotated(claim as Record<string, string>), volume: annotated(volume as Record<string, string>) },
      storageClass: annotated(storageClass as Record<string, string>),
    })
  t.equal(rules({}, {}, to), undefined)
  t.equal(backupRules({ claim: undefined, volume: undefined, storageClass: undefined }), undefined)
  const found = {
    to: { node: 'pi-2', path: '/mnt' },
    keep: undefined,
    mode: undefined,
    schedule: '@daily',
    isWanted: false,
  }
  t.same(rules(when, to, {}), found)
  t.same(rules({}, {}, { ...to, ...when }), found)
  t.match(
    rules({ ...when, ...to }, {}, {}),
    { problem: /no folder for backups is given/ },
    'a tenant does not decide where',
  )
  const own = {
    'bramble.dev/backup': '@hourly',
    'bramble.dev/backup-keep': 'last=2',
    'bramble.dev/backup-mode': 'stopped',
  }
  t.match(rules(own, {}, { ...to, ...when }), { schedule: '@hourly', keep: 'last=2', mode: 'stopped' })
  const now = { 'bramble.dev/backup-now': 'usual' }
  t.match(rules({}, { ...to, ...now }, {}), { isWanted: true, mode: undefined, schedule: undefined })
  t.match(rules(own, { ...to, 'bramble.dev/backup-now': 'live' }, {}), { mode: 'live' })
  t.match(rules(when, { 'bramble.dev/backup-to': '/mnt' }, {}), { problem: /is not NODE:PATH/ })
  t.match(rules({ ...when, 'bramble.dev/backup-keep': 'all' }, to, {}), { problem: /backup-keep/ })
  t.match(rules({ ...when, 'bramble.dev/backup-mode': 'cold' }, to, {}), { problem: /use live, hooks or stopped/ })
})

test('a backup has the changes of the last whole one, unless that is old, elsewhere or little larger', async (t) => {
  const full = { id: '0', name: 'full', time: time('25T03:00'), bytes: 1_000 }
  const last: LastBackup = {
    name: 'last',
    to: 'pi-2:/mnt',
    mark: 'm',
    time: time('28T03:00'),
    bytes: 100,
    mode: 'live',
    full,
  }
  const facts = { to: 'pi-2:/mnt', nowMs: at('29T03:00') }
  t.equal(baseOf(last, facts), full)
  t.equal(baseOf({ ...last, name: 'full', bytes: 1_000 }, facts), full)
  t.equal(baseOf(undefined, facts), undefined)
  t.equal(baseOf(last, { ...facts, to: 'pi-3:/mnt' }), undefined)
  t.equal(baseOf({ ...last, bytes: 500 }, facts), undefined)
  t.equal(baseOf(last, { ...facts, nowMs: at('29T03:00') + 3 * 24 * 3600_000 }), undefined)
  t.equal(baseOf(last, { ...facts, nowMs: at('24T03:00') }), undefined, 'the date went back')
})
