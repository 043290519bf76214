import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import type { Log } from '../../daemon/log.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { image, listening, nodeInMemory, podRunning } from '../testing/node-in-memory.ts'
import { openBootRecord } from './boot-record.ts'
import { recordStart } from './start-record.ts'

const lasting = 600_000
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** The agent on a machine that has booted, with a clock of its own. */
async function booted(directory: string, bootID: string, log: Log) {
  const record = await openBootRecord(directory, bootID)
  const clock = fakeClock()
  return { record, clock, gate: record.startGate({ clock, log }) }
}

test('a new boot is noticed once, a first start and a restart are none', async (t) => {
  const directory = t.testdir({})
  const rebooted = async (bootID: string) => (await openBootRecord(directory, bootID)).rebooted
  t.equal(await rebooted('boot-1'), false, 'we never ran here before')
  t.equal(await rebooted('boot-1'), false, 'only the agent was started again')
  t.equal(await rebooted('boot-2'), true)
  t.equal(await rebooted('boot-2'), false)
})

test('boots that did not last are counted, back to the last one that did', async (t) => {
  const directory = t.testdir({})
  writeFileSync(join(directory, 'boot-id'), 'boot-0\n')
  const boot = (name: string) => openBootRecord(directory, name)
  await (await boot('boot-1')).goesOn(lasting)
  t.equal((await boot('boot-1')).shortBoots, 1, 'of one before nobody knows that it lasted')
  t.equal((await boot('boot-2')).shortBoots, 0)
  t.equal((await boot('boot-3')).shortBoots, 1)
  for (const name of ['boot-4', 'boot-5']) await boot(name)
  const last = await boot('boot-5')
  t.equal(last.shortBoots, 3)
  await last.goesOn(lasting)
  await last.goesOn(lasting)
  t.equal((await boot('boot-6')).shortBoots, 0)
  for (let more = 7; more < 30; more++) await boot(`boot-${more}`)
  t.ok(readFileSync(join(directory, 'boot-id'), 'utf8').length < 200, 'the file stays small')
})

test('a pod that takes the machine down is found among others, held back, and let go when it is mended', async (t) => {
  const directory = t.testdir({})
  const path = join(directory, 'boot-id')
  const log = quietLog(t, 'Pods that took the machine down are held back')
  const pods = ['a', 'bad', 'c']
  let boots = 0
  /** The machine goes down five seconds after `bad` was started; gives who was started by then. */
  const oneBoot = async () => {
    const { record, clock, gate } = await booted(directory, `boot-${++boots}`, log)
    const started = new Map<string, number>()
    const start = async () => {
      for (const uid of pods.filter((one) => !started.has(one) && gate.hold(one) === undefined)) {
        await gate.starting(uid)
        started.set(uid, clock.monotonicMs())
      }
    }
    for (let second = 0; second < 120; second++) {
      await start()
      if (clock.monotonicMs() - (started.get('bad') ?? Number.POSITIVE_INFINITY) >= 5_000) break
      await clock.advance(1_000)
    }
    return { record, clock, gate, started }
  }
  const whoStarted = async () => [...(await oneBoot()).started.keys()].join(' ')
  t.equal(await whoStarted(), 'a bad c')
  t.equal(readFileSync(path, 'utf8'), 'boot-1\n', 'nothing is written for pods while all is well')
  t.equal(await whoStarted(), 'a bad c')
  t.equal(await whoStarted(), 'a bad', 'c was last, and waits: the machine goes down without it')
  for (const _ of [1, 2, 3]) t.equal(await whoStarted(), 'a c bad')
  const { record, clock, gate, started } = await oneBoot()
  t.same([...started.keys()], ['a', 'c'], 'the others run')
  t.match(gate.hold('bad'), { reason: 'BootLoop', isNews: false, message: /held back.*tried again after an hour/ })
  await record.goesOn(lasting)
  t.match(readFileSync(path, 'utf8'), /^boot-7 lasted\n[\s\S]*held bad\n$/)
  t.equal(gate.hold('bad made anew'), undefined)

  await clock.advance(3600_000)
  t.equal(gate.hold('bad'), undefined)
  await gate.starting('bad')
  await record.goesOn(lasting)
  t.match(readFileSync(path, 'utf8'), /held bad/, 'as long as it may still do harm')
  await clock.advance(600_000)
  await record.goesOn(lasting)
  t.notMatch(readFileSync(path, 'utf8'), /held/)
})

test('cuts of power at any moment, and shutdowns, blame no pod', async (t) => {
  const directory = t.testdir({})
  const log = quietLog(t)
  for (let boot = 0; boot < 30; boot++) {
    const { record, clock, gate } = await booted(directory, `boot-${boot}`, log)
    // Within the first ten seconds; then such as leave time for everything, but end in order.
    const uptimeMs = boot < 15 ? (boot * 7_919) % 10_000 : 20_000
    for (let ms = 0; ms < uptimeMs; ms += 500) {
      const hold = gate.hold('only')
      t.notMatch(hold?.message ?? '', /held back/)
      if (hold === undefined) await gate.starting('only')
      await clock.advance(500)
    }
    if (boot >= 15) await record.ends()
  }
  t.notMatch(readFileSync(join(directory, 'boot-id'), 'utf8'), /held/)
})

test('cuts of power in every boot, but minutes after the pods were started, blame no pod', async (t) => {
  const directory = t.testdir({})
  const log = quietLog(t)
  for (let boot = 0; boot < 8; boot++) {
    const { record, clock, gate } = await booted(directory, `boot-${boot}`, log)
    for (let second = 0; second < 180; second += 10) {
      if (gate.hold('only') === undefined) await gate.starting('only')
      await clock.advance(10_000)
      await record.goesOn(second * 1_000)
    }
  }
  t.notMatch(readFileSync(join(directory, 'boot-id'), 'utf8'), /held/)
})

test('of pods that start at once the last one is on record, and the file is whole', async (t) => {
  const directory = t.testdir({})
  writeFileSync(join(directory, 'boot-id'), 'boot-0\n')
  const { gate } = await booted(directory, 'boot-1', quietLog(t))
  await Promise.all(['a-pod-with-a-long-name', 'b', 'a-pod-with-another-name', 'd'].map(gate.starting))
  t.equal(readFileSync(join(directory, 'boot-id'), 'utf8'), 'boot-1 last=d\nboot-0\n')
})

test('a suspect that asks a registry nobody hears from for its image runs within the half minute all the same', async (t) => {
  const { clock, runtime, log, start, world } = nodeInMemory(t)
  const always = [{ name: 'main', image, imagePullPolicy: 'Always', command: listening }]
  world.want(podRunning('web', listening, { containers: always }))
  runtime.registry.add(image)
  await clock.advance(1_000)
  t.equal(world.status('web')?.phase, 'Running')
  await world.stop()
  runtime.powerCut()
  t.teardown(runtime.holdPulls('silent'))
  const directory = t.testdir({ 'boot-id': 'boot-2 last=uid-of-web\nboot-1\n' })
  const next = start({ gate: (await openBootRecord(directory, 'boot-3')).startGate({ clock, log }) })
  await clock.advance(9_000)
  t.match(next.told(), [/^BootLoop: /])
  // What is left of the 30 s is for Docker, whose calls take no time here.
  for (let second = 9; second < 21; second++) await clock.advance(1_000)
  t.match(next.status('web'), { phase: 'Running', containerStatuses: [{ restartCount: 1 }] })
})

test('an agent that is started again in the same boot goes on with its record', async (t) => {
  const directory = t.testdir({})
  writeFileSync(join(directory, 'boot-id'), 'boot-2 last=a some=later-word\n\0\0\nboot-1\n')
  const first = await booted(directory, 'boot-3', quietLog(t))
  t.match(first.gate.hold('a'), { isNews: true, message: /2 times in a row/ })
  await first.record.ends()
  t.match(readFileSync(join(directory, 'boot-id'), 'utf8'), /^boot-3 ended trial=a\n/)
  const second = await booted(directory, 'boot-3', quietLog(t))
  t.match(readFileSync(join(directory, 'boot-id'), 'utf8'), /^boot-3 trial=a\n/)
  t.ok(second.gate.hold('a'))
})

test('a suspect that does no harm is let go, also where another agent of this boot started it', async (t) => {
  const directory = t.testdir({ 'boot-id': 'boot-3 trial=a began\nboot-2 last=a\nboot-1\n' })
  const record = await openBootRecord(directory, 'boot-3')
  const clock = fakeClock()
  const gate = record.startGate({ clock, log: quietLog(t) })
  t.equal(gate.hold('a'), undefined)
  await record.goesOn(60_000)
  t.match(readFileSync(join(directory, 'boot-id'), 'utf8'), /^boot-3 trial=a began\n/)
  await clock.advance(120_000)
  await record.goesOn(180_000)
  t.match(readFileSync(join(directory, 'boot-id'), 'utf8'), /^boot-3 trial=a\n/)
})

test('a folder that takes no writes is no failure', async (t) => {
  const record = await openBootRecord('/nowhere/at/all', 'boot-1')
  t.equal(record.rebooted, false)
  await record.goesOn(lasting)
})

test('who starts while all is well leaves nothing behind', async (t) => {
  const record = await openBootRecord(t.testdir({}), 'boot-1')
  const gate = record.startGate({ clock: fakeClock(), log: quietLog(t) })
  const usedBytes = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const before = usedBytes()
  for (let pod = 0; pod < 50_000; pod++) await gate.starting(`${pod}-of-a-job-that-runs-each-minute`)
  t.ok(usedBytes() - before < 1e6)
})

test("the agent's starts are remembered until the machine is restarted, as far as they matter", async (t) => {
  const path = join(t.testdir({}), 'bramble', 'id.starts')
  t.same(await recordStart(path, 1_000.4), [1_000])
  t.same(await recordStart(path, 2_000), [1_000, 2_000])
  for (let more = 0; more < 20; more++) await recordStart(path, 3_000)
  t.equal((await recordStart(path, 4_000))?.length, 10)
  t.equal(await recordStart('/proc/nowhere/starts', 1), undefined, 'where nothing can be written nothing is remembered')
})
