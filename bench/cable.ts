/** Measures how soon a node reconnects after its cable was unplugged and plugged in again. `--help` prints the usage. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openMqttBroker } from '../broker-controller/broker/mqtt/mqtt-broker.ts'
import { openAuthority } from '../certs/authority.ts'
import { issueNode, issueServer } from '../certs/issue.ts'
import { systemClock } from '../daemon/clock.ts'
import { openLog } from '../daemon/log.ts'
import { metricsRegistry } from '../daemon/metrics-registry.ts'
import { machineNetwork } from '../test/support/machine-network.ts'
import { startProgram } from '../test/support/program.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const { out } = benchmarkOptions({
  name: 'node dist/bench/cable.js',
  text: `Unplugs the cable of a node, plugs it in again, and prints how soon the broker receives a message of the node. The link of the agent is
in a network namespace of its own, the broker outside of it, with a virtual cable in between. Needs root and ip.`,
  options: {
    out: {
      value: 'S',
      help: 'how long the cable is unplugged',
      range: [1, 100_000],
      repeated: true,
      default: ['12', '45', '90'],
    },
  },
})
const here = fileURLToPath(new URL('..', import.meta.url))
const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }

try {
  const folder = await mkdtemp(join(tmpdir(), 'bc-'))
  ending.teardown(() => rm(folder, { recursive: true, force: true }))
  const network = await machineNetwork(ending)
  const space = `bc-${process.pid}`
  const plug = network.plug(space)
  ending.teardown(() => plug.remove())
  await plug.fresh()

  const nowMs = Date.now()
  const authority = await openAuthority(join(folder, 'authority'), nowMs)
  const tls = { ca: authority.certificate, ...issueServer(authority, { names: [network.hostAddress], nowMs }) }
  const log = openLog({ level: 'error', format: 'text', write: (line) => process.stderr.write(line) })
  const broker = await openMqttBroker({ tls, clock: systemClock, log, registry: metricsRegistry() })
  ending.teardown(() => broker.close())
  let receivedMs = 0
  const listener = {
    message: async () => {
      receivedMs = performance.now()
    },
    connected: () => undefined,
    disconnected: () => undefined,
  }
  const port = await broker.listen({ port: 0, host: network.hostAddress }, listener)
  await broker.publish(
    { kind: 'controller' },
    JSON.stringify({ state: 'online', epoch: 'e', time: 'now', nodeMonitorGraceSeconds: 50, shortLeases: true }),
  )
  const settings = {
    ...{ nodeName: 'pi-1', mqttUrl: `mqtts://${network.hostAddress}:${port}`, agentVersion: 'v1', bootID: 'b1' },
    ...{ ca: authority.certificate, ...issueNode(authority, { nodeName: 'pi-1', nowMs }) },
  }
  const program = join(here, 'agent/testing/lone-agent.js')
  startProgram(['ip', 'netns', 'exec', space, process.execPath, program, JSON.stringify(settings)], (end) =>
    ending.teardown(end),
  )
  await receivedSince(0, 30_000)
  console.log('| cable out | received again after |\n|---|---|')
  for (const seconds of out) {
    await delay(15_000)
    await plug.pull()
    await delay(seconds * 1000)
    await plug.put()
    const putMs = performance.now()
    const backMs = await receivedSince(putMs, 120_000)
    console.log(`| ${seconds} s | ${((backMs - putMs) / 1000).toFixed(1)} s |`)
  }

  /** When the first message of the node arrived after this. */
  async function receivedSince(ms: number, withinMs: number): Promise<number> {
    const lastMs = performance.now() + withinMs
    while (receivedMs <= ms) {
      if (performance.now() > lastMs) throw new Error(`Nothing was received for ${withinMs / 1000} s`)
      await delay(20)
    }
    return receivedMs
  }
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const end of ends.reverse()) await end().catch((error: unknown) => console.error(error))
}
