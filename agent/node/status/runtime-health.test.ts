import { type Test, test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { agentBoard } from '../../assembly/board.ts'
import { RuntimeError, type RuntimeInfo } from '../../runtime/runtime.ts'
import { engineInfo as info } from '../../testing/builders.ts'
import { runtimeHealth, runtimeView } from './runtime-health.ts'

function engine(t: Test, up: boolean) {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const world = {
    up,
    hangs: false,
    asked: 0,
    listed: 0,
    changes: 0,
    answersAfterMs: 0,
    infoAfterMs: 0,
    infoFails: false,
    info: info as RuntimeInfo,
    tags: ['web:1'],
    listFails: false,
  }
  const board = agentBoard()
  board.runtime.onChange(() => world.changes++)
  const loop = runtimeHealth({
    runtime: {
      async probe() {
        if (world.hangs) return new Promise<never>(() => undefined)
        if (world.answersAfterMs > 0) await clock.sleep(world.answersAfterMs)
        if (!world.up) throw new RuntimeError('Unreachable', 'Cannot list containers')
      },
      async info() {
        world.asked++
        if (world.infoAfterMs > 0) await clock.sleep(world.infoAfterMs)
        if (world.infoFails) throw new RuntimeError('Failed', 'Cannot read Docker info')
        return world.info
      },
      async listImages() {
        world.listed++
        if (world.listFails) throw new RuntimeError('Failed', 'Cannot list images')
        return [{ id: 'i', digests: [], tags: world.tags, sizeBytes: 1 }]
      },
    },
    clock,
    log,
    writes: board,
  })
  const health = runtimeView(board.runtime, clock)
  const stopping = new AbortController()
  const done = loop.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    if (!world.hangs) await done
  })
  return { world, board, health, clock, log }
}

test('an engine that answers is healthy, and its images are listed now and then', async (t) => {
  const { world, health, clock } = engine(t, true)
  await clock.advance(299_999)
  t.same(health.problems(), [])
  t.match(health.info(), { rootDirectory: '/var/lib/docker' })
  t.equal(health.images().length, 1)
  t.equal(world.listed, 1)
  t.equal(world.changes, 1, 'nothing changed since the first answer')
  await clock.advance(10_000)
  t.equal(world.listed, 2)
})

test('an engine that stops answering is down after thirty seconds, and back at once', async (t) => {
  const { world, health, clock, log } = engine(t, true)
  await clock.advance(5_000)
  world.up = false
  await clock.advance(24_999)
  t.same(health.problems(), [])
  await clock.advance(1)
  t.same(health.problems(), ['container runtime is down'])
  await clock.advance(1_000)
  const changes = world.changes
  t.equal(changes, 2, 'listeners were notified')
  world.up = true
  await clock.advance(1_000)
  t.same(health.problems(), [])
  t.equal(world.changes, changes + 1)
  t.equal(log.messages('warn').length, 1, 'logged once, not at each attempt')
  t.same(log.messages('info'), ['Container engine answers', 'Container engine answers'])
})

test('an engine that never answered is first waited for, then down', async (t) => {
  const { health, clock } = engine(t, false)
  await clock.settle()
  t.equal(health.isChecked(), true)
  t.same(health.problems(), ['container runtime status check may not have completed yet'])
  await clock.advance(30_000)
  t.same(health.problems(), ['container runtime is down'])
  t.equal(health.info(), undefined)
})

test('an engine that was not asked while the machine slept is not down', async (t) => {
  const { health, clock } = engine(t, true)
  await clock.advance(5_000)
  clock.suspend(3_600_000)
  t.same(health.problems(), [])
  await clock.advance(1)
  t.same(health.problems(), [])
})

test('an engine that hangs is not waited for', async (t) => {
  const { world, health, clock } = engine(t, true)
  world.hangs = true
  t.equal(health.isChecked(), false)
  await clock.advance(2_000)
  t.equal(health.isChecked(), true)
})

test('a refusing and a hanging engine are distinguished, each with its duration', async (t) => {
  const { world, health, clock } = engine(t, true)
  await clock.advance(5_000)
  t.equal(health.silence(), undefined)
  world.up = false
  await clock.advance(15_000)
  t.match(health.silence(), { kind: 'refuses', sinceMs: 14_000 })
  world.up = true
  await clock.advance(1_000)
  t.equal(health.silence(), undefined)
  world.hangs = true
  await clock.advance(7_000)
  t.equal(health.silence(), undefined, 'a moment does not count as silence')
  await clock.advance(10_000)
  t.match(health.silence(), { kind: 'hangs', sinceMs: 11_000 })
})

test('before the first request nothing is known of the engine', (t) => {
  const clock = fakeClock()
  const view = runtimeView(agentBoard().runtime, clock)
  t.equal(view.isChecked(), false)
  t.same(view.problems(), ['container runtime status check may not have completed yet'])
  t.same([view.info(), view.images(), view.silence()], [undefined, [], undefined])
  t.end()
})

test('a new version, a new root directory and new images are changes; a failed list is not', async (t) => {
  const { world, health, clock, log } = engine(t, true)
  let seen = 0
  const stop = health.onChange(() => seen++)
  await clock.advance(0)
  t.equal(seen, 1)
  await clock.advance(6_000)
  t.equal(seen, 1, 'the same answer')
  world.info = { ...info, version: '99.0' }
  await clock.advance(48_000)
  t.equal(seen, 1, 'it is asked for them once a minute')
  await clock.advance(6_000)
  t.equal(seen, 2)
  world.info = { ...world.info, rootDirectory: '/data/docker' }
  await clock.advance(60_000)
  t.equal(seen, 3)
  world.listFails = true
  await clock.advance(300_000)
  t.equal(world.listed, 2)
  t.equal(health.images().length, 1)
  t.equal(seen, 3)
  world.listFails = false
  world.tags = ['web:2']
  await clock.advance(300_000)
  t.match(health.images(), [{ tags: ['web:2'] }])
  t.equal(seen, 4)
  stop()
  world.info = { ...world.info, version: '100.0' }
  await clock.advance(60_000)
  t.equal(seen, 4)
  t.match(log.lines, [{ message: 'Container engine answers', facts: { version: info.version } }])
})

test('an engine that came back is a change, also within the time that it has to answer', async (t) => {
  const { world, clock, log } = engine(t, true)
  await clock.advance(1_000)
  world.up = false
  await clock.advance(6_000)
  t.equal(world.changes, 1)
  world.up = true
  await clock.advance(1_000)
  t.equal(world.changes, 2)
  t.equal(world.listed, 2, 'its images are listed again')
  t.match(log.lines.find(({ level }) => level === 'warn')?.facts, { error: { name: 'RuntimeError' } })
})

test('an engine that fails after two seconds hangs, one that fails earlier refuses', async (t) => {
  for (const [answersAfterMs, kind] of [
    [1_999, 'refuses'],
    [2_000, 'hangs'],
  ] as const) {
    const { world, health, clock } = engine(t, false)
    world.answersAfterMs = answersAfterMs
    await clock.advance(answersAfterMs)
    await clock.advance(answersAfterMs + 1_000)
    t.match(health.silence(), { kind, sinceMs: 2 * answersAfterMs + 1_000 }, String(answersAfterMs))
    world.answersAfterMs = 0
    await clock.advance(10_000)
  }
})

test('a request under way is a hang from its second second on', async (t) => {
  const { world, health, clock } = engine(t, true)
  await clock.advance(1_000)
  world.hangs = true
  await clock.advance(6_999)
  t.equal(health.silence(), undefined)
  await clock.advance(1)
  t.same(health.silence(), { kind: 'hangs', sinceMs: 2_000 })
})

test('an engine that is late with its properties is well, and is asked for them once at a time', async (t) => {
  const { world, health, clock, log } = engine(t, true)
  world.infoAfterMs = 40_000
  await clock.advance(0)
  t.equal(health.isChecked(), false, 'the first status waits for them')
  await clock.advance(2_000)
  t.equal(health.isChecked(), true, 'for two seconds')
  for (let second = 2; second < 39; second++) {
    await clock.advance(1_000)
    t.same([health.problems(), health.silence()], [[], undefined], `second ${second}`)
  }
  t.same([world.asked, health.info(), world.changes], [1, undefined, 1])
  await clock.advance(1_000)
  t.match(health.info(), { version: info.version })
  t.equal(world.changes, 2)
  world.info = { ...info, version: '99.0' }
  await clock.advance(110_000)
  t.match([health.info(), world.changes], [{ version: '99.0' }, 3])
  t.same(log.messages('warn'), [])
})

test('an engine that does not report its properties is well, and that is logged once', async (t) => {
  const { world, health, clock, log } = engine(t, true)
  world.infoFails = true
  await clock.advance(60_000)
  t.same([health.problems(), health.silence(), health.isChecked()], [[], undefined, true])
  t.same(log.messages('warn'), ['Container engine does not report its properties'])
  world.infoFails = false
  await clock.advance(6_000)
  t.match(health.info(), { version: info.version })
})
