import { type Test, test } from 'tap'
import { healthConditionTypes } from '../../api/node.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { agentBoard } from '../assembly/board.ts'
import { type HealthSource, healthChecks, scheduledChecks } from '../health/checks.ts'
import { healthManager } from '../health/health-manager.ts'
import { engineObstacle } from '../network/gate/network-obstacle.ts'
import { sourceOf } from '../testing/health-source.ts'
import { verdicts } from '../testing/verdicts.ts'
import { healthLooks } from './health.ts'

const bad = { now: true, before: true }

/** Everything that a check looks for is wrong. */
const illMachine: HealthSource = {
  power: () => ({ underVoltage: bad, throttling: { ...bad, by: ['throttled'] } }),
  temperature: () => ({
    zones: [{ name: 'cpu', celsius: 99, trips: [{ kind: 'critical', celsius: 100 }] }],
    board: undefined,
  }),
  flash: () => [{ name: 'mmcblk0', lifeTime: [11, 2], preEndOfLife: 3 }],
  radio: () => [{ name: 'wlan0', signalDbm: -90 }],
  memoryCgroup: () => ({ isEnabled: false, commandLine: '', file: '/boot/firmware/cmdline.txt' }),
  filesystems: async () => [
    {
      role: 'root',
      path: '/',
      device: '/dev/mmcblk0p2',
      isReadOnly: true,
      isMeantSo: false,
      errors: 3,
      failure: undefined,
    },
  ],
  docker: () => ({ version: undefined, silence: { kind: 'refuses', sinceMs: 60_000 } }),
  fleetNetwork: () => ({ obstacle: engineObstacle('nftables') }),
  podNetworkProblem: async () => 'The addresses of the node are used by another network',
  kernelTroubles: () => ({ troubles: [{ reason: 'TaskHung', what: 'dockerd waits', pid: 812 }], isReadable: true }),
  clock: () => ({ synchronized: false, uptimeMs: 3_600_000, controller: undefined }),
  restarts: () => ({ agentStartsAgoMs: [], dockerStartsAgoMs: [], shortBoots: 3 }),
}

const findingsOf = (source: HealthSource) => Promise.all(healthLooks(async () => source).map(({ look }) => look()))

async function conditionsOf(t: Test, source: HealthSource) {
  const clock = fakeClock()
  const board = agentBoard()
  const manager = healthManager({
    checks: scheduledChecks(source, { highTemperatureCelsius: undefined }),
    clock,
    log: quietLog(t),
    recordEvent: () => undefined,
    writes: board,
  })
  const stopping = new AbortController()
  const done = manager.run(stopping.signal)
  for (let second = 0; second < 90; second++) await clock.advance(1_000)
  stopping.abort()
  await done
  return board.machineHealth.get()?.conditions ?? []
}

test('every check of health is a condition of the node and a finding of the doctor', async (t) => {
  const [conditions, findings] = [await conditionsOf(t, illMachine), await findingsOf(illMachine)]
  t.same(conditions.map(({ type }) => type).toSorted(), [...healthConditionTypes].toSorted())
  t.same(new Set(conditions.map(({ status }) => status)), new Set(['True']))
  t.same(verdicts(findings), Object.fromEntries(healthChecks.map(({ name }) => [name, 'problem'])))
  t.equal(new Set(healthChecks.map(({ name }) => name)).size, healthConditionTypes.length, 'each has its own name')
  for (const [index, { type }] of healthChecks.entries()) {
    const [condition, finding] = [conditions.find((one) => one.type === type), findings[index]]
    t.match(condition?.message, finding?.found ?? 'a finding', type)
  }
  for (const { check, found, remedy } of findings) {
    t.match(remedy, /^[A-Z][a-z]+ /, `${check}: ${remedy}`)
    t.match(found, /^[A-Za-z].*[^.]$/, check)
  }
})

test('what was wrong since the start is a warning, and a machine without sensors is unknown', async (t) => {
  const seen = { now: false, before: true }
  const source = sourceOf({
    power: () => ({ underVoltage: seen, throttling: { ...seen, by: [] } }),
    temperature: () => ({ zones: [], board: undefined }),
    flash: () => [],
    radio: () => [],
    memoryCgroup: () => undefined,
  })
  const named = new Map(healthLooks(async () => source).map(({ check, look }) => [check.name, look]))
  const verdictOf = async (name: string) => (await named.get(name)?.())?.verdict
  t.equal(await verdictOf('supply-voltage'), 'warning')
  t.equal(await verdictOf('throttling'), 'warning')
  for (const name of ['temperature', 'storage-wear', 'wifi', 'memory-cgroup', 'filesystems', 'docker', 'clock']) {
    t.equal(await verdictOf(name), 'unknown', name)
  }
  await t.rejects(verdictOf('pod-network'), 'the doctor shows why')
})

test('a root that is read-only by configuration is well', async (t) => {
  const [root] = await illMachine.filesystems()
  if (root === undefined) throw new Error('There is no root')
  const filesystems = async () => [{ ...root, isMeantSo: true }]
  const found = await findingsOf({ ...illMachine, filesystems })
  t.match(
    found.find(({ check }) => check === 'filesystems'),
    { verdict: 'ok', found: /read-only by configuration/ },
  )
})
