/** A node whose date is wrong, or jumps: it is Ready all the same, and no container notices anything. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { importBusybox, startDockerd } from './support/dockerd.ts'
import { joinFleet, startController, temporaryFolder } from './support/fleet.ts'
import { machineRoot } from './support/machine-root.ts'
import { podManifest } from './support/manifests.ts'
import { type Program, startProgram } from './support/program.ts'
import { eventually } from './support/wait.ts'

const agentProgram = fileURLToPath(new URL('../agent/main.js', import.meta.url))
const image = 'test/busybox:1'

test('wrong clocks', { timeout: 280_000 }, async (t) => {
  const folder = await temporaryFolder(t)
  const dockerd = await startDockerd(t)
  await importBusybox(dockerd.docker, image)
  const controller = await startController(t, { dataDir: join(folder, 'controller') })
  const dataDir = join(folder, 'agent')
  await joinFleet(controller, 'pi-01', dataDir)

  // The date as the agent, its TLS library and all else in it see it.
  const date = join(folder, 'date')
  const faketime = join(await machineRoot(), 'usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1')
  const startAgent = async (at: string): Promise<Program> => {
    await writeFile(date, `${at}\n`)
    const command = [process.execPath, agentProgram, 'run', `--data-dir=${dataDir}`, '--healthz-port=0']
    return startProgram(
      [...command, `--docker-socket=${dockerd.socket}`, '--log-format=json'],
      (end) => t.teardown(end),
      {
        LD_PRELOAD: faketime,
        FAKETIME_TIMESTAMP_FILE: date,
        FAKETIME_NO_CACHE: '1',
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
      },
    )
  }
  const containers = async () => (await dockerd.docker.listContainers()).map(({ Id, State }) => `${Id} ${State}`).sort()
  const get = async (path: string) => (await controller.kubectl('get', ...path.split(' '))).trim()
  const isReady = async () =>
    (await get(`node pi-01 -o jsonpath={.status.conditions[?(@.type=="Ready")].status}`)) === 'True'
  const clockReason = () => get(`node pi-01 -o jsonpath={.status.conditions[?(@.type=="ClockUnsynchronized")].reason}`)
  const probe = { exec: { command: ['true'] }, periodSeconds: 1, initialDelaySeconds: 1 }
  const readinessProbe = { ...probe, failureThreshold: 1 }
  const manifest = podManifest({
    name: 'web',
    image,
    command: ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 0.2; done'],
    spec: { activeDeadlineSeconds: 30_000 },
    container: { livenessProbe: probe, readinessProbe },
  })

  const first = await startAgent('+0')
  await first.said('Connected to the control plane')
  await controller.kubectlWith(manifest, 'apply', '-f', '-')
  await controller.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=90s')
  const before = await containers()
  await first.stop()

  for (const [what, at, reason] of [
    ['in 1970', '@1970-01-02 03:04:05', 'ClockBehindController'],
    ['a year behind', '-1y', 'ClockBehindController'],
    ['ten years ahead', '+10y', 'ClockAheadOfController'],
  ] as const) {
    await t.test(`an agent that starts ${what}`, async (t) => {
      const began = performance.now()
      const agent = await startAgent(at)
      await agent.said('Connected to the control plane', 60_000)
      await eventually('the node is Ready', isReady)
      t.comment(`Ready ${Math.round(performance.now() - began)} ms after the agent's start`)
      t.ok(performance.now() - began < 60_000)
      await eventually('it says what is wrong', async () => (await clockReason()) === reason)
      t.same(await containers(), before)
      t.match(await get('pod web'), /1\/1 +Running +0 /)
      await agent.stop()
    })
  }

  await t.test('a date that jumps while the agent runs', async (t) => {
    const agent = await startAgent('+0')
    await agent.said('Connected to the control plane')
    await eventually('the node is Ready', isReady)
    for (const at of ['+1h', '-1h', '+10y', '-20y', '+0']) {
      await writeFile(date, `${at}\n`)
      await controller.kubectlWith(podManifest({ name: 'other', image }), 'apply', '-f', '-')
      await controller.kubectl('wait', '--for=condition=Ready', 'pod/other', '--timeout=90s')
      await controller.kubectl('delete', 'pod', 'other', '--grace-period=1')
      t.same(await containers(), before, at)
      t.ok(await isReady())
    }
    const told = agent.lines.filter(({ message }) => /lost|Connected/.test(message))
    t.equal(told.length, 1, 'the link stood')
  })

  t.match(await get('pod web'), /1\/1 +Running +0 /)
  t.notMatch(await get('events --field-selector involvedObject.name=web'), /Killing|Unhealthy|Deadline|Evict/)
})
