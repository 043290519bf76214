import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { type CheckpointData, checkpointWriter } from './pod-checkpoint.ts'

test('the copy follows within ten minutes, and not more often however much changes', async (t) => {
  const clock = fakeClock()
  const made = { saves: 0, copies: 0 }
  const checkpoint = {
    load: async () => undefined,
    save: async () => void made.saves++,
    keepCopy: async () => void made.copies++,
  }
  const remembered = { desired: { epoch: 'one', version: 1, pods: [] }, endings: {} }
  const keeping = checkpointWriter({ checkpoint, clock, random: () => 0.5, log: quietLog(t) }, () => remembered)
  const stopping = new AbortController()
  const running = keeping.run(stopping.signal)
  await clock.advance(590_000)
  t.same(made, { saves: 0, copies: 0 })
  await clock.advance(20_000)
  t.same(made, { saves: 0, copies: 1 }, 'of what the life before left')
  await clock.advance(7200_000)
  t.equal(made.copies, 1)
  for (let minute = 0; minute < 60; minute++) {
    keeping.wake()
    await clock.advance(60_000)
  }
  t.equal(made.saves, 60)
  t.ok(made.copies >= 5 && made.copies <= 7, `${made.copies} copies`)
  await clock.advance(600_000)
  const { copies } = made
  await clock.advance(7200_000)
  t.equal(made.copies, copies)
  keeping.wake()
  stopping.abort()
  await running
  t.same(made, { saves: 61, copies }, 'who stops writes what is new, and that once')
})

test('a failed save is logged and repeated with a back-off, and again at the end', async (t) => {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const saved: number[] = []
  let fails = true
  const checkpoint = {
    load: async () => undefined,
    save: async () => {
      saved.push(clock.monotonicMs())
      if (fails) throw new Error('no space left on device')
    },
    keepCopy: async () => undefined,
  }
  const data = { desired: { epoch: 'one', version: 1, pods: [] }, endings: {} }
  const writer = checkpointWriter({ checkpoint, clock, random: () => 0.5, log }, () => data)
  const stopping = new AbortController()
  const running = writer.run(stopping.signal)
  writer.wake()
  await clock.advance(60_000)
  const waits = saved.slice(1).map((atMs, i) => atMs - (saved[i] ?? 0))
  t.ok(saved.length >= 4 && saved.length < 12, `${saved.length} attempts`)
  t.same(
    waits,
    waits.toSorted((a, b) => a - b),
    'each wait is at least as long as the one before',
  )
  t.match(log.lines[0], { level: 'warn', message: 'Checkpoint not saved', facts: { error: { message: /no space/ } } })
  fails = false
  await clock.advance(60_000)
  const attempts = saved.length
  await clock.advance(60_000)
  t.equal(saved.length, attempts, 'saved once')
  fails = true
  writer.wake()
  stopping.abort()
  await clock.advance(30_000)
  await running
  t.equal(saved.at(-1), clock.monotonicMs() - 30_000, 'the last attempt is made at the end')
})

test('who waits for a save waits for one that began after its change, and for none on a disk that fails', async (t) => {
  const clock = fakeClock()
  const ends: ((error?: Error) => void)[] = []
  const checkpoint = {
    load: async () => undefined,
    save: () => new Promise<void>((resolve, reject) => void ends.push((error) => (error ? reject(error) : resolve()))),
    keepCopy: async () => undefined,
  }
  const data = { desired: { epoch: 'one', version: 1, pods: [] }, endings: {} }
  const writer = checkpointWriter({ checkpoint, clock, random: () => 0.5, log: quietLog(t) }, () => data)
  writer.wake()
  await writer.saved()
  const stopping = new AbortController()
  const running = writer.run(stopping.signal)
  const saved: string[] = []
  const wait = (name: string) => writer.saved().then(() => void saved.push(name))
  void wait('first')
  await clock.advance(1)
  t.same([ends.length, saved], [1, []])
  writer.wake()
  void wait('second')
  ends[0]?.()
  await clock.advance(1)
  t.same([ends.length, saved], [2, ['first']])
  ends[1]?.()
  await clock.advance(1)
  t.same(saved, ['first', 'second'])
  await writer.saved()
  writer.wake()
  void wait('third')
  await clock.advance(1)
  ends[2]?.(new Error('no space left on device'))
  await clock.advance(1)
  t.same(saved, ['first', 'second', 'third'])
  await writer.saved()
  stopping.abort()
  await clock.advance(1)
  ends[3]?.()
  await running
})

test('without data nothing is saved', async (t) => {
  const clock = fakeClock()
  let saves = 0
  const checkpoint = { load: async () => undefined, save: async () => void saves++, keepCopy: async () => undefined }
  const writer = checkpointWriter({ checkpoint, clock, random: () => 0.5, log: quietLog(t) }, () => undefined)
  const stopping = new AbortController()
  const running = writer.run(stopping.signal)
  writer.wake()
  await clock.advance(60_000)
  stopping.abort()
  await running
  t.equal(saves, 0)
})

test('each change is saved at once, and nothing at the end that is saved', async (t) => {
  const clock = fakeClock()
  let saves = 0
  const checkpoint = { load: async () => undefined, save: async () => void saves++, keepCopy: async () => undefined }
  let data: CheckpointData | undefined
  const writer = checkpointWriter({ checkpoint, clock, random: () => 0.5, log: quietLog(t) }, () => data)
  const stopping = new AbortController()
  const running = writer.run(stopping.signal)
  writer.wake()
  await clock.advance(0)
  t.equal(saves, 0, 'there is no data yet')
  data = { desired: { epoch: 'one', version: 1, pods: [] }, endings: {} }
  for (const expected of [1, 2, 3]) {
    writer.wake()
    await clock.advance(0)
    t.equal(saves, expected)
  }
  stopping.abort()
  await running
  t.equal(saves, 3)
})
