/** A machine whose date is wrong, or jumps, or that was off for longer than its certificate: it joins and is Ready all the same, its pod untouched. */
import { X509Certificate } from 'node:crypto'
import { rename, rm, writeFile } from 'node:fs/promises'
import { test } from 'tap'
import { readIdentity, writeIdentity } from '../agent/join/identity.ts'
import { openAuthority } from '../certs/authority.ts'
import { issueNode } from '../certs/issue.ts'
import { bootMachine, type Machine } from './support/machine.ts'
import { commandOrThrow } from './support/machine-commands.ts'
import { podManifest } from './support/manifests.ts'
import { hubOn, installController, installOnDisk, isNodeReady, testPackages } from './support/packaged.ts'
import { eventually } from './support/wait.ts'

const image = 'test/busybox:1'
const dayMs = 24 * 3600_000
const agentDir = '/var/lib/bramble/agent'

test('wrong clocks', async (t) => {
  const packages = await testPackages()
  const machine = await bootMachine(t, {
    name: 'pi-01',
    async prepare(disk) {
      await installController(disk, packages.controller)
      await installOnDisk(disk, packages.agent)
      await writeFile(`${disk}/etc/agents-date.env`, fakedDate(await fakingLibrary(disk)).join('\n'))
      await commandOrThrow('mkdir', ['-p', `${disk}/etc/systemd/system/bramble-agent.service.d`])
      const dropIn = '[Service]\nEnvironmentFile=/etc/agents-date.env\n'
      await writeFile(`${disk}/etc/systemd/system/bramble-agent.service.d/date.conf`, dropIn)
      // It would report this host's clock.
      await commandOrThrow('ln', ['-s', '/dev/null', `${disk}/etc/systemd/system/systemd-timedated.service`])
    },
  })
  await machine.importImage(image)
  const hub = await hubOn(t, machine)

  /** The date as the agent, its TLS library and all else in it see it; the controller's is right. */
  const setDate = async (date: string) => {
    // At one moment: from an empty file the library takes the right date.
    const path = machine.disk('/etc/agents-date')
    await writeFile(`${path}.new`, `${date}\n`)
    await rename(`${path}.new`, path)
  }
  const get = async (path: string) => (await hub.kubectl('get', ...path.split(' '))).trim()
  const ready = () => eventually('the node is Ready', () => isNodeReady(hub, 'pi-01'))
  const clockReason = () => get(`node pi-01 -o jsonpath={.status.conditions[?(@.type=="ClockUnsynchronized")].reason}`)
  const containers = () => machine.run(`docker ps --no-trunc --format '{{.ID}} {{.State}}' | sort`)
  const journal = () => machine.journal('bramble-agent')

  const faked = 'env $(cat /etc/agents-date.env)'
  await setDate('@1970-01-02 03:04:05')
  t.match(await machine.run(`${faked} ${await hub.joinLine()} --no-run`), /clock is \d+ s behind the controller's/)
  await ready()
  // In no hurry: a slow machine is not an ill container.
  const probe = { exec: { command: ['true'] }, periodSeconds: 1, initialDelaySeconds: 1, timeoutSeconds: 60 }
  const web = podManifest({
    name: 'web',
    image,
    command: ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 0.2; done'],
    spec: { activeDeadlineSeconds: 30_000 },
    container: { livenessProbe: probe, readinessProbe: { ...probe, failureThreshold: 1 } },
  })
  await hub.kubectlWith(web, 'apply', '-f', '-')
  await hub.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=90s')
  const before = await containers()

  for (const [what, date, steps, reason] of [
    ['in 1970', '@1970-01-02 03:04:05', ['@1970-01-02 04:04:05', '@1970-01-02 02:04:05'], 'ClockBehindController'],
    ['a year behind', '-1y', [], 'ClockBehindController'],
    ['ten years ahead', '+10y', ['+9y'], 'ClockAheadOfController'],
  ] as const) {
    await t.test(`an agent that starts ${what}`, async (t) => {
      await setDate(date)
      const began = performance.now()
      await machine.run('systemctl restart bramble-agent')
      const pid = (await machine.run('systemctl show -p MainPID --value bramble-agent')).trim()
      await eventually('it is connected', async () => (await journal()).includes(`[${pid}]: Connected to the control`))
      await ready()
      t.comment(`Ready ${Math.round(performance.now() - began)} ms after the agent's start`)
      t.ok(performance.now() - began < 60_000)
      const doctor = (await machine.tryRun(`${faked} bramble-agent doctor`)).stdout
      t.match(doctor.replace(/\s+/g, ' '), /The API at \S+ accepts this machine as node pi-01/)

      for (const step of steps) {
        await setDate(step)
        await hub.kubectlWith(podManifest({ name: 'other', image }), 'apply', '-f', '-')
        await hub.kubectl('wait', '--for=condition=Ready', 'pod/other', '--timeout=90s')
        await hub.kubectl('delete', 'pod', 'other', '--grace-period=1')
      }
      await eventually('the reason is reported', async () => (await clockReason()) === reason)
      t.equal(await containers(), before)
      t.ok(await isNodeReady(hub, 'pi-01'))
    })
  }
  t.match(await journal(), /The clock is behind the last known time/)
  t.notMatch(await journal(), /Connection to the control plane lost/)
  t.match(await get('pod web'), /1\/1 +Running +0 /)
  t.notMatch(await get('events --field-selector involvedObject.name=web'), /Killing|Unhealthy|Deadline|Evict/)

  await t.test('a machine that was off past the end of its certificate, and wakes up in 1970', async (t) => {
    await machine.cutPower()
    await endCertificate(machine)
    await rm(machine.disk(`${agentDir}/last-known-time`), { force: true })
    await setDate('@1970-01-02 03:04:05')
    await machine.powerOn()
    await eventually('it has a new certificate', async () => (await certificateEndsMs(machine)) > Date.now())
    await ready()
    await eventually('its pod runs', async () => /1\/1 +Running/.test(await get('pod web')))
    t.ok((await certificateEndsMs(machine)) > Date.now() + 300 * dayMs)
    t.match(await journal(), /Certificate of this node renewed/)
    t.notMatch(await get('events'), /TaintManagerEviction/)
  })
})

async function fakingLibrary(disk: string): Promise<string> {
  return (await commandOrThrow('sh', ['-c', `cd "${disk}" && echo usr/lib/*/faketime/libfaketime.so.1`])).trim()
}

/** The clock that measures durations stays what it is. */
function fakedDate(library: string): readonly string[] {
  return [
    `LD_PRELOAD=/${library}`,
    'FAKETIME_TIMESTAMP_FILE=/etc/agents-date',
    'FAKETIME_NO_CACHE=1',
    'FAKETIME_DONT_FAKE_MONOTONIC=1',
    '',
  ]
}

/** In place of the node's certificate one that ended a month ago. */
async function endCertificate(machine: Machine): Promise<void> {
  const folder = machine.disk(agentDir)
  const authority = await openAuthority(machine.disk('/var/lib/bramble/controller/authority'), Date.now())
  const issued = issueNode(authority, { nodeName: 'pi-01', nowMs: Date.now() - 31 * dayMs, lifeMs: dayMs })
  const identity = await readIdentity(folder)
  if (identity === undefined) throw new Error('It has never joined')
  await writeIdentity(folder, { ...identity, ...issued })
}

async function certificateEndsMs(machine: Machine): Promise<number> {
  const identity = await readIdentity(machine.disk(agentDir))
  return identity === undefined ? 0 : Date.parse(new X509Certificate(identity.certificate).validTo)
}
