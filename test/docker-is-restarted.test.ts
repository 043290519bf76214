/** A Docker that does not answer is restarted by the systemd that runs it: on a machine that really booted. */
import { test } from 'tap'
import { dockerRuntime } from '../agent/adapters/docker/docker-runtime.ts'
import { systemdUnits } from '../agent/adapters/systemd/systemd-units.ts'
import { agentBoard } from '../agent/assembly/board.ts'
import { dockerKeeper } from '../agent/health/docker-keeper.ts'
import type { NodeEvent } from '../agent/node/status/node-event.ts'
import { runtimeHealth, runtimeView } from '../agent/node/status/runtime-health.ts'
import { type Clock, systemClock } from '../daemon/clock.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'
import { bootMachine } from './support/machine.ts'
import { eventually } from './support/wait.ts'

/** Everything that takes a minute takes ten seconds. */
const speed = 6
const hurried: Clock = {
  monotonicMs: () => systemClock.monotonicMs() * speed,
  wallMs: systemClock.wallMs,
  sleep: (ms, signal) => systemClock.sleep(ms / speed, signal),
}

test('Docker under systemd', async (t) => {
  const machine = await bootMachine(t, { name: 'pi-01' })
  const runtime = dockerRuntime({ socketPath: machine.dockerSocket, nodeName: 'pi-01' })
  const log = quietLog(t)
  const stopping = new AbortController()
  const board = agentBoard()
  const health = runtimeView(board.runtime, hurried)
  const asking = runtimeHealth({ runtime, clock: hurried, log, writes: board }).run(stopping.signal)
  await eventually('Docker answers', () => health.info() !== undefined, { withinMs: 60_000 })
  const services = systemdUnits({ root: machine.path('/') })
  t.equal(services.isAvailable(), true)
  t.same(await services.state('docker.service'), { load: 'loaded', active: 'active' })
  t.same(await services.state('no-such.service'), { load: 'not-found', active: 'inactive' })

  const mainPid = async () => (await machine.run('systemctl show --property MainPID --value docker.service')).trim()

  const comesBack = async (how: string) => {
    const before = await mainPid()
    const events: NodeEvent[] = []
    const ending = new AbortController()
    const keeper = dockerKeeper({
      silence: health.silence,
      services,
      clock: hurried,
      log,
      recordEvent: (event) => void events.push(event),
    })
    const keeping = keeper.run(ending.signal)
    await machine.run(how)
    await eventually('it was restarted', () => events.length > 0, { withinMs: 60_000 })
    await eventually(
      'another Docker answers',
      async () => {
        const now = await mainPid()
        return now !== before && now !== '0' && health.silence() === undefined
      },
      { withinMs: 60_000 },
    )
    ending.abort()
    await keeping
    return events
  }

  await t.test('one that hangs', async (t) => {
    const events = await comesBack('systemctl kill --signal=STOP --kill-who=main docker.service')
    t.match(events, [
      { type: 'Warning', reason: 'DockerRestarted', message: /^Restarted docker\.service: it hung for/ },
    ])
  })

  await t.test('one that was stopped', async (t) => {
    const events = await comesBack('systemctl stop docker.socket docker.service')
    t.match(events, [{ reason: 'DockerRestarted', message: /^Restarted docker\.service: it was down for/ }])
  })

  stopping.abort()
  await asking
})
