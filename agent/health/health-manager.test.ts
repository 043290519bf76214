import { type Test, test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { agentBoard } from '../assembly/board.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import { fine, type HealthFinding, wrong } from './condition-check.ts'
import { healthManager, type ScheduledCheck } from './health-manager.ts'
import { type Settled, settle } from './settling.ts'

const ill = wrong('TooHot', 'It is too hot')
const well = fine('TemperatureFine', 'It is cool')
const shown = ({ status, reason, message }: HealthFinding) => ({ status, reason, message })

/** What is shown after each of these looks, one a second. */
function course(patience: { riseMs?: number; holdMs: number }, ...found: (HealthFinding | undefined)[]) {
  let state: Settled | undefined
  return found.map((finding, second) => {
    state = settle(state, finding, second * 1_000, patience)
    return state?.shown.status ?? 'none'
  })
}

test('what is wrong is shown at once, and over when it stayed away for its time', async (t) => {
  t.same(course({ holdMs: 3_000 }, well, ill, well, well, well, well), [
    'False',
    'True',
    'True',
    'True',
    'False',
    'False',
  ])
  t.same(course({ holdMs: 2_000 }, ill, well, ill, well, well), ['True', 'True', 'True', 'True', 'False'])
})

test('evidence that must last is not shown before it has', async (t) => {
  t.same(course({ riseMs: 2_000, holdMs: 0 }, ill, ill, ill, well), ['False', 'False', 'True', 'False'])
  t.same(course({ riseMs: 2_000, holdMs: 0 }, ill, well, ill, ill), ['False', 'False', 'False', 'False'])
})

test('a source that goes away takes its condition along, after its time', async (t) => {
  t.same(course({ holdMs: 2_000 }, ill, undefined, undefined), ['True', 'True', 'none'])
  t.same(course({ holdMs: 2_000 }, well, undefined), ['False', 'none'])
})

function machine(t: Test, ...more: readonly ScheduledCheck[]) {
  const [clock, log] = [fakeClock(), quietLog(t)]
  const world = {
    heat: well as HealthFinding | undefined,
    looks: 0,
    fails: false,
    changes: 0,
    events: [] as NodeEvent[],
  }
  const look = async () => {
    world.looks++
    if (world.fails) throw new Error('No answer of the sensor')
    return world.heat
  }
  const board = agentBoard()
  board.machineHealth.onChange(() => void world.changes++)
  const check: ScheduledCheck = { type: 'HighTemperature', periodMs: 10_000, holdMs: 30_000, unfit: true, look }
  const manager = healthManager({
    checks: [check, ...more],
    clock,
    log,
    recordEvent: (event) => void world.events.push(event),
    writes: board,
  })
  const stopping = new AbortController()
  const done = manager.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await done
  })
  const conditions = () => board.machineHealth.get()?.conditions
  const problems = () => board.machineHealth.get()?.problems
  return { world, conditions, problems, clock, log }
}

test('a change is shown, recorded as one event, and makes an unfit machine unready', async (t) => {
  const { world, conditions, problems, clock } = machine(t)
  t.equal(conditions(), undefined)
  await clock.settle()
  t.same(conditions(), [{ type: 'HighTemperature', ...shown(well) }])
  t.same(world.events, [], 'a healthy machine causes no event')
  world.heat = ill
  await clock.advance(10_000)
  t.same(conditions(), [{ type: 'HighTemperature', ...shown(ill) }])
  t.same(problems(), ['It is too hot'])
  await clock.advance(60_000)
  t.same(world.events, [{ type: 'Warning', reason: 'TooHot', message: 'HighTemperature: It is too hot' }])
  t.equal(world.changes, 2)
  world.heat = well
  await clock.advance(29_000)
  t.same(problems(), ['It is too hot'])
  await clock.advance(11_000)
  t.same(problems(), [])
  t.match(world.events.at(-1), { type: 'Normal', reason: 'TemperatureFine', message: /is over: It is cool/ })
  t.equal(world.changes, 3)
})

test('each side is looked at in its own time, and one that cannot be read keeps what was shown', async (t) => {
  const { world, conditions, clock, log } = machine(t)
  await clock.advance(59_000)
  t.equal(world.looks, 6)
  world.fails = true
  await clock.advance(30_000)
  t.same(conditions(), [{ type: 'HighTemperature', ...shown(well) }])
  t.same(log.messages('warn'), ['Health check failed'], 'logged once')
})

test('a check that does not end does not delay the others', async (t) => {
  const hanging: ScheduledCheck = {
    type: 'StorageWear',
    periodMs: 10_000,
    holdMs: 0,
    look: () => new Promise<undefined>(() => undefined),
  }
  const { world, conditions, clock } = machine(t, hanging)
  await clock.advance(4_000)
  t.equal(conditions()?.length, 1)
  await clock.advance(56_000)
  t.ok(world.looks >= 5, `${world.looks} looks`)
})

test('an agent without checks reports a machine without conditions', async (t) => {
  const board = agentBoard()
  const needs = { checks: [], clock: fakeClock(), log: quietLog(t), recordEvent: () => undefined, writes: board }
  const stopping = new AbortController()
  const done = healthManager(needs).run(stopping.signal)
  t.same(board.machineHealth.get(), { conditions: [], problems: [] })
  stopping.abort()
  await done
})

test('another reason for the same trouble is another Event, and each failure of a check is logged once', async (t) => {
  const { world, conditions, clock, log } = machine(t)
  world.heat = ill
  await clock.advance(10_000)
  world.heat = wrong('FarTooHot', 'It burns')
  await clock.advance(10_000)
  t.same(
    world.events.map(({ type, reason }) => `${type} ${reason}`),
    ['Warning TooHot', 'Warning FarTooHot'],
  )
  t.match(log.lines, [
    {
      level: 'warn',
      message: 'Machine is unhealthy',
      facts: { condition: 'HighTemperature', reason: 'TooHot', because: 'It is too hot' },
    },
    { level: 'warn', message: 'Machine is unhealthy', facts: { reason: 'FarTooHot' } },
  ])
  world.heat = undefined
  await clock.advance(50_000)
  t.same(conditions(), [])
  t.equal(world.events.length, 2, 'a source that goes away is not a recovery')
  world.fails = true
  await clock.advance(10_000)
  world.fails = false
  await clock.advance(10_000)
  world.fails = true
  await clock.advance(10_000)
  const failed = log.lines.filter(({ message }) => message === 'Health check failed')
  t.match(failed, [{ facts: { condition: 'HighTemperature', error: { message: 'No answer of the sensor' } } }, {}])
  t.equal(failed.length, 2, 'after a success it is logged again')
})

test('a late result is shown when it arrives, those of one pass are shown together', async (t) => {
  let answer: (finding: HealthFinding) => void = () => undefined
  const late: ScheduledCheck = {
    type: 'StorageWear',
    periodMs: 10_000,
    holdMs: 0,
    look: () =>
      new Promise<HealthFinding>((resolve) => {
        answer = resolve
      }),
  }
  const prompt: ScheduledCheck = { type: 'KernelDeadlock', periodMs: 10_000, holdMs: 0, look: () => well }
  const { world, conditions, problems, clock } = machine(t, prompt, late)
  await clock.advance(4_000)
  t.equal(world.changes, 1, 'two results, one change')
  await clock.advance(500)
  answer(ill)
  await clock.settle()
  t.match(conditions(), [
    { type: 'HighTemperature' },
    { type: 'KernelDeadlock' },
    { type: 'StorageWear', status: 'True' },
  ])
  t.equal(world.changes, 2)
  t.same(problems(), [], 'it does not make the machine unfit')
})
