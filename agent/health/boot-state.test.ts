import { test } from 'tap'
import {
  afterRelease,
  afterRunning,
  afterStart,
  afterStop,
  afterUptime,
  type BootState,
  bootHold,
  deletedPods,
  harmlessPods,
  historyOf,
  isWatched,
  openedBoot,
  shortBoots,
  withName,
} from './boot-state.ts'

const nothing = { boots: [], held: [] }
const twoBroken = [{ bootID: 'b2', last: 'a' }, { bootID: 'b1' }]
const held = { uid: 'h', pod: 'default/h' }
/** Two boots broke off: `a` is on trial in the third, and `h` is held back. */
const suspected: BootState = openedBoot({ boots: twoBroken, held: [held] }, 'b3').state

test('a boot is opened as new, as the same, or as one that cannot be named', async (t) => {
  t.match(openedBoot(nothing, 'b1'), { rebooted: false, isChanged: true, state: { current: { bootID: 'b1' } } })
  t.match(openedBoot({ boots: [{ bootID: 'b1' }], held: [] }, 'b1'), { rebooted: false, isChanged: false })
  t.match(openedBoot({ boots: [{ bootID: 'b1' }], held: [] }, 'b2'), { rebooted: true, isChanged: true })
  const unnamed = openedBoot({ boots: [{ bootID: 'b1', lasted: true }], held: [] }, '')
  t.match(unnamed, { rebooted: false, isChanged: false, state: { current: { bootID: 'b1' }, earlier: [] } })
  t.same(openedBoot(nothing, '').state.current, { bootID: '' })
  const boots = [{ bootID: 'b3' }, ...twoBroken]
  t.same(openedBoot({ boots, held: [] }, 'b3').state.earlier, twoBroken, 'this boot is not one of the earlier')
  const restarted = openedBoot({ boots: [{ bootID: 'b1', ended: true }], held: [] }, 'b1')
  t.same([restarted.isChanged, restarted.state.current], [true, { bootID: 'b1' }], 'it goes on after an orderly stop')
})

test('the newest suspect is put on trial, and a proven one is held back', async (t) => {
  t.same(suspected.current, { bootID: 'b3', trial: 'a' })
  const died = (bootID: string, controlled: boolean) => ({
    bootID,
    trial: 'a',
    began: true,
    ran: 5,
    ...(controlled && { controlled }),
  })
  const boots = [died('b6', true), died('b5', true), died('b4', false), died('b3', false), ...twoBroken]
  const { state } = openedBoot({ boots, held: [] }, 'b7')
  t.same(state.held, [{ uid: 'a', pod: 'a' }])
  t.same(state.current, { bootID: 'b7' })
  const known = openedBoot({ boots: twoBroken, held: [{ uid: 'a', pod: 'default/a' }] }, 'b3').state
  t.same(known.current, { bootID: 'b3' }, 'a pod that is held back already is not tried')
})

test('short boots are counted back to the last one that lasted', async (t) => {
  const count = (boots: Parameters<typeof openedBoot>[0]['boots']) =>
    shortBoots(openedBoot({ boots, held: [] }, 'b9').state)
  t.equal(count([]), 0)
  t.equal(count([{ bootID: 'b2' }, { bootID: 'b1' }]), 2)
  t.equal(count([{ bootID: 'b3' }, { bootID: 'b2', lasted: true }, { bootID: 'b1' }]), 1)
})

test('a boot lasts after ten minutes, and is then never marked again', async (t) => {
  t.equal(afterUptime(suspected, 599_999), suspected)
  const lasting = afterUptime(suspected, 600_000)
  t.same(lasting.current, { bootID: 'b3', lasted: true })
  t.equal(afterUptime(lasting, 700_000), lasting)
  t.equal(afterStop(lasting), lasting)
  t.same(afterStop(suspected).current, { bootID: 'b3', trial: 'a', ended: true })
  t.equal(bootHold(lasting, 'a', false), undefined)
  t.equal(isWatched(lasting, 'b', false), false)
})

test('a held pod waits, a suspect waits until it began, and a pod that is exempt is neither tried nor watched', async (t) => {
  t.same(bootHold(suspected, 'h', false), { kind: 'held', held })
  t.match(bootHold(suspected, 'a', false), { kind: 'trial', waitMs: 10_000 })
  t.equal(bootHold(suspected, 'a', true), undefined)
  t.equal(bootHold(suspected, 'b', false), undefined)
  const began = afterStart(suspected, 'a')
  t.same(began.current, { bootID: 'b3', trial: 'a', began: true })
  t.equal(bootHold(began, 'a', false), undefined)
  t.same(
    [isWatched(suspected, 'b', false), isWatched(suspected, 'b', true), isWatched(suspected, 'h', true)],
    [true, false, true],
  )
  t.equal(
    isWatched(openedBoot(nothing, 'b1').state, 'b', false),
    false,
    'after no broken boot nothing is saved for pods',
  )
})

test('a record that lost the boots before a trial does not stop the suspect', async (t) => {
  const { state } = openedBoot({ boots: [{ bootID: 'b3', trial: 'a' }], held: [] }, 'b3')
  t.equal(bootHold(state, 'a', false), undefined)
  t.same(afterStart(state, 'a').current, { bootID: 'b3', trial: 'a', began: true })
})

test('the last pod started is saved, but not a held one', async (t) => {
  t.equal(afterStart(suspected, 'b').current.last, 'b')
  t.equal(afterStart(suspected, 'h'), suspected)
  const two = { ...suspected, held: [held, { uid: 'i', pod: 'default/i' }] }
  t.equal(afterStart(two, 'i'), two)
  t.equal(isWatched(two, 'i', true), true)
})

test('a start after the long wait is saved as such', async (t) => {
  const died = (bootID: string) => ({ bootID, trial: 'a', began: true })
  const { state } = openedBoot({ boots: [died('b4'), died('b3'), ...twoBroken], held: [] }, 'b5')
  t.match(bootHold(state, 'a', false), { kind: 'trial', waitMs: 30_000 })
  t.same(afterStart(state, 'a').current, { bootID: 'b5', trial: 'a', began: true, controlled: true })
})

test('the time a suspect ran is saved at each mark, and it is cleared after a minute', async (t) => {
  const began = afterStart(suspected, 'a')
  t.equal(
    afterRunning(suspected, () => 30_000),
    suspected,
    'it has not begun',
  )
  t.equal(
    afterRunning(began, () => Number.NEGATIVE_INFINITY),
    began,
  )
  const ten = afterRunning(began, () => 12_000)
  t.equal(ten.current.ran, 10)
  t.equal(
    afterRunning(ten, () => 19_000),
    ten,
  )
  t.equal(afterRunning(began, () => 10_000).current.ran, 10)
  t.same(afterRunning(ten, () => 60_000).current, { bootID: 'b3', trial: 'a' })
})

test('held pods are released when they did no harm for ten minutes, and when they are deleted', async (t) => {
  t.same(
    harmlessPods(suspected, () => 599_999),
    [],
  )
  t.same(
    harmlessPods(suspected, () => 600_000),
    [held],
  )
  t.same(deletedPods(suspected, new Set(['h'])), [])
  t.same(deletedPods(suspected, new Set(['a'])), [held])
  t.same(afterRelease(suspected, [held]).held, [])
  t.equal(afterRelease(suspected, []), suspected)
  const other = { uid: 'i', pod: 'default/i' }
  t.same(afterRelease({ ...suspected, held: [held, other] }, [held]).held, [other])
})

test('the name of a held pod replaces its UID once', async (t) => {
  t.equal(withName(suspected, held, 'default/h'), suspected)
  const other = { uid: 'i', pod: 'i' }
  t.same(withName({ ...suspected, held: [held, other] }, other, 'default/i').held, [
    held,
    { uid: 'i', pod: 'default/i' },
  ])
})

test('what is saved is bounded', async (t) => {
  const boots = Array.from({ length: 20 }, (_, index) => ({ bootID: `b${index}`, lasted: true }))
  const many = Array.from({ length: 20 }, (_, index) => ({ uid: `u${index}`, pod: `default/u${index}` }))
  const saved = historyOf(openedBoot({ boots, held: many }, 'now').state)
  t.same([saved.boots.length, saved.boots[0]?.bootID, saved.held.length, saved.held.at(-1)?.uid], [8, 'now', 8, 'u19'])
})
