/** The life of our packages on a machine: installed, upgraded, hanging, removed, purged. Its pod notices nothing of it. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { hostileArchive, hostileImageRefused } from './hostile/support/hostile-image.ts'
import { temporaryFolder } from './support/fleet.ts'
import { bootMachine, type Machine } from './support/machine.ts'
import { podManifest } from './support/manifests.ts'
import { hubOn, install, isNodeReady, testPackages } from './support/packaged.ts'
import { busyboxLayer } from './support/registry.ts'
import { eventually } from './support/wait.ts'

test('packages on a machine', async (t) => {
  const packages = await testPackages()
  const machine = await bootMachine(t, { name: 'pi-01' })
  await machine.importImage('test/busybox:1')
  await machine.run('mkdir -m 700 /var/lib/bramble') // as a quickstart of root's might have left it
  await install(machine, packages.controller)
  const hub = await hubOn(t, machine)
  const started = () =>
    machine.run(
      "docker ps -q --filter label=io.kubernetes.container.name=main | xargs -r docker inspect -f '{{.Id}} {{.State.StartedAt}}'",
    )
  const property = async (unit: string, name: string) =>
    (await machine.run(`systemctl show -p ${name} --value ${unit}`)).trim()
  let pod = ''

  await t.test('the controller runs without root', async (t) => {
    t.equal(await property('bramble-controller', 'User'), 'bramble')
    t.match(await property('bramble-controller', 'StatusText'), /Kubernetes API on port 6443/)
    t.match(await machine.run('stat -c "%U %a" /var/lib/bramble/controller/authority/ca.key'), /^bramble 600/)
  })

  await t.test('an agent that has not joined waits quietly, and starts when it has', async (t) => {
    const began = performance.now()
    t.match(await install(machine, packages.agent), /this machine is in no fleet yet/)
    t.equal(await property('bramble-agent', 'ActiveState'), 'inactive')
    t.equal((await machine.run('systemctl is-system-running')).trim(), 'running', 'nothing has failed')
    const status = async () => (await machine.tryRun('systemctl status --full --no-pager bramble-agent')).stdout
    const remedy = /has not joined a fleet\. Create a token on the controller \(bramble-controller token create/
    await eventually('its status names the remedy', async () => {
      if (remedy.test(await status())) return true
      // A journal that is behind by more than the second for which the unit waits shows it after another start.
      await machine.run('systemctl start bramble-agent')
      return remedy.test(await status())
    })
    await machine.run(`${await hub.joinLine()} --no-run`)
    await eventually('it is Ready', () => isNodeReady(hub, 'pi-01'), { withinMs: 60_000 })
    t.comment(`Ready ${Math.round(performance.now() - began)} ms after the installation began`)
    await eventually('systemd has the unit', async () =>
      /Node pi-01: 0 pods/.test(await property('bramble-agent', 'StatusText')),
    )
    const onNetwork = [
      'get',
      'node',
      'pi-01',
      '-o',
      'jsonpath={.status.conditions[?(@.type=="FleetNetworkUnavailable")].status}',
    ]
    await eventually(
      'it is on the network of the fleet, which a new one has',
      async () => (await hub.kubectl(...onNetwork)) === 'False',
    )
    const shared = {
      spec: { securityContext: { fsGroup: 2000 }, volumes: [{ name: 'shared', emptyDir: {} }] },
      container: { volumeMounts: [{ name: 'shared', mountPath: '/shared' }] },
    }
    await hub.kubectlWith(podManifest({ name: 'web', image: 'test/busybox:1', ...shared }), 'apply', '-f', '-')
    await hub.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=60s')
    const scratch = await machine.run("stat -c '%a %g' /var/lib/bramble/agent/pods/*/volumes/shared")
    t.equal(scratch.trim(), '2777 2000', 'the unit allows what an emptyDir with fsGroup needs')
    pod = await started()
    t.match(pod, /^[0-9a-f]{64} /)
    const address = await hub.kubectl('get', 'pod', 'web', '-o', 'jsonpath={.status.podIP}')
    t.match(address, /^10\.244\./, 'the pod has an address of the fleet')
  })

  await t.test('an upgrade restarts both programs and no pod', async (t) => {
    await machine.run('echo "maxPods: 50" >>/etc/bramble/agent.yaml')
    await install(machine, packages.laterController)
    await install(machine, packages.laterAgent)
    await eventually(
      'the node shows the later version',
      async () =>
        (await hub.tryKubectl('get', 'node', 'pi-01', '-o', 'wide')).stdout.includes('99.0.0') &&
        isNodeReady(hub, 'pi-01'),
      { withinMs: 90_000 },
    )
    t.equal(await started(), pod)
    t.match(await hub.kubectl('get', 'pod', 'web'), /1\/1 +Running +0 /)
    t.match(await machine.run('cat /etc/bramble/agent.yaml'), /maxPods: 50/, 'what was configured is kept')
  })

  await t.test('an image with 60 MiB of labels takes neither the agent within its unit nor another pod', async (t) => {
    const archive = join(await temporaryFolder(t), 'hostile.tar')
    await writeFile(archive, hostileArchive('test/hostile:1', await busyboxLayer()))
    await machine.copyIn(archive, '/var/tmp/hostile.tar')
    // Another program uses it: it is there when the agent starts, and stays.
    const load = 'docker load --quiet --input /var/tmp/hostile.tar && docker create --name other test/hostile:1 true'
    await machine.run(load, { withinMs: 300_000 })
    const most = Number(await property('bramble-agent', 'MemoryMax')) / 2 ** 20
    t.equal(most, 384)
    const group = await holdMemory(machine, most)
    await machine.run('systemctl restart bramble-agent')
    const pid = await property('bramble-agent', 'MainPID')
    const never = { spec: { nodeName: 'pi-01' }, container: { imagePullPolicy: 'Never' } }
    const apply = (name: string, image: string) =>
      hub.kubectlWith(podManifest({ name, image, ...never }), 'apply', '-f', '-')
    await apply('loaded', 'test/hostile:1')
    await apply('after', 'test/busybox:1')
    await hub.kubectl('wait', '--for=condition=Ready', 'pod/after', '--timeout=120s')
    const path = '{.status.containerStatuses[0].state.waiting.message}'
    await eventually(
      'the pod of the image is refused',
      async () => hostileImageRefused.test(await hub.kubectl('get', 'pod', 'loaded', '-o', `jsonpath=${path}`)),
      { withinMs: 300_000 },
    )
    t.equal(await property('bramble-agent', 'MainPID'), pid, 'the agent runs')
    const peakKiB = await machine.run(`awk '/^VmHWM/ { print $2 }' /proc/${pid}/status`)
    const peak = Number(peakKiB) / 1024
    t.ok(peak > 0 && peak < most, `${Math.round(peak)} MiB at most`)
    t.notMatch(await machine.journal('bramble-agent'), /oom-kill/)
    if (group === undefined) t.comment('The machine has no memory controller: what the kernel enforces is not measured')
    else await isHeld(t, machine, group, { pid, most })
    t.match(await hub.kubectl('get', 'pod', 'after'), /Running +0 /)
    await hub.kubectl('delete', 'pod', 'loaded', 'after', '--timeout=80s')
    await machine.run('docker rm other && docker rmi test/hostile:1 && rm /var/tmp/hostile.tar')
  })

  await t.test('what root does with the controller’s files is the controller’s', async (t) => {
    const folder = '/var/lib/bramble/controller'
    await machine.run('bramble-controller certificates rollover begin && bramble-controller backup /root/kept')
    await machine.run('systemctl stop bramble-controller && bramble-controller restore /root/kept --replace')
    t.equal(await machine.run(`find ${folder} ! -user bramble`), '')
    await machine.run('systemctl start bramble-controller')
    await eventually('the node is back', () => isNodeReady(hub, 'pi-01'), { withinMs: 90_000 })
    t.equal(await started(), pod)
  })

  await t.test('the example of a scheduled backup makes one and keeps the newest', async (t) => {
    const folder = '/var/backups/bramble'
    const examples = '/usr/share/doc/bramble-controller/examples'
    await machine.run(`cp ${examples}/bramble-backup.* /etc/systemd/system/ && systemctl daemon-reload`)
    await machine.run('systemctl enable --now bramble-backup.timer')
    t.match(await property('bramble-backup.timer', 'NextElapseUSecRealtime'), / 03:/)
    const older = Array.from({ length: 20 }, (_, i) => `bramble-controller-2020-01-${i + 10}T030000Z.backup`)
    await machine.run(`mkdir -p ${folder} && cd ${folder} && touch mine.txt ${older.join(' ')}`)
    await machine.run('systemctl start bramble-backup.service')
    const kept = (await machine.run(`ls ${folder}`)).trim().split('\n')
    t.equal(kept.length, 15, 'fourteen backups, and what is not a backup')
    t.ok(kept.includes('mine.txt') && kept.includes(older.at(-1) ?? '') && !kept.includes(older[0] ?? ''))
    const [newest = ''] = kept.filter((name) => !older.includes(name))
    t.equal((await machine.run(`stat -c '%U %a' ${folder}/${newest}`)).trim(), 'root 600')
    await machine.run('systemctl disable --now bramble-backup.timer && rm /etc/systemd/system/bramble-backup.*')
    await machine.run('systemctl daemon-reload')
  })

  await t.test('an agent that stands still is killed and started again by systemd', async (t) => {
    const soon = '/etc/systemd/system/bramble-agent.service.d/soon.conf'
    await machine.write(soon, '[Service]\nWatchdogSec=4s\nRestartSec=1s\n')
    await machine.run('systemctl daemon-reload && systemctl restart bramble-agent')
    const pid = await property('bramble-agent', 'MainPID')
    await machine.run(`kill -STOP ${pid}`)
    await eventually(
      'another one runs',
      async () =>
        (await property('bramble-agent', 'ActiveState')) === 'active' &&
        (await property('bramble-agent', 'MainPID')) !== pid,
      { withinMs: 60_000 },
    )
    await machine.run(`rm ${soon}; systemctl daemon-reload`)
    t.match(await machine.journal('bramble-agent'), /Watchdog timeout/)
    t.equal(await started(), pod)
  })

  await t.test('what was stopped by hand stays so over an upgrade', async (t) => {
    await machine.run('systemctl stop bramble-agent bramble-controller')
    await machine.copyIn(packages.laterAgent, '/var/tmp/agent.deb')
    await machine.copyIn(packages.laterController, '/var/tmp/controller.deb')
    await machine.run('dpkg --install /var/tmp/agent.deb /var/tmp/controller.deb', { withinMs: 120_000 })
    t.same(
      [await property('bramble-agent', 'ActiveState'), await property('bramble-controller', 'ActiveState')],
      ['inactive', 'inactive'],
    )
  })

  await t.test('neither program has printed a warning of Node', async (t) => {
    for (const unit of ['bramble-agent', 'bramble-controller']) {
      t.notMatch(await machine.journal(unit), /\(node:\d+\) .*Warning: /, unit)
    }
  })

  await t.test('pods stay when the agent is removed, and the state until it is purged', async (t) => {
    t.match(
      await machine.run('apt-get remove --yes bramble-agent 2>&1', { withinMs: 120_000 }),
      /pods that run here keep running/,
    )
    t.equal(await started(), pod)
    await machine.run('ls /etc/bramble/agent.yaml /var/lib/bramble/agent/identity.json')
    t.equal((await machine.run('systemctl is-system-running')).trim(), 'running')
    const key = '/var/lib/bramble/controller/authority/ca.key'
    const authority = await machine.run(`sha256sum <${key}`)
    const purge = () =>
      machine.run('apt-get purge --yes bramble-agent bramble-controller bramble-runtime 2>&1', { withinMs: 120_000 })
    const [, kept = ''] = /authority, with its key, is kept in (\S+)/.exec(await purge()) ?? []
    t.match(kept, /^\/var\/backups\/bramble-controller-authority-\d{4}-/)
    t.equal(await machine.run(`sha256sum <${kept}/ca.key`), authority)
    t.equal((await machine.run(`stat -c '%U %a' ${kept} ${kept}/ca.key`)).trim(), 'root 700\nroot 600')
    t.equal((await machine.tryRun('grep " /run/bramble/" /proc/mounts')).stdout, '', 'no memory stays mounted')
    const networks = "docker network ls --filter label=bramble.dev/node --format '{{.Name}}'"
    t.match(await machine.run(networks), /^bramble_pi-01_/, 'a pod is still on it')
    t.equal((await machine.tryRun('ls -d /etc/bramble /var/lib/bramble /usr/lib/bramble* 2>/dev/null')).stdout, '')
    t.equal(await started(), pod, 'the pod is Docker’s')
    t.equal((await machine.tryRun('systemctl list-unit-files "bramble*" --no-legend')).stdout, '')
  })

  await t.test('a purge removes the network that no pod is on', async (t) => {
    const networks = "docker network ls --filter label=bramble.dev/node --format '{{.Name}}'"
    await machine.run('docker ps -aq --filter label=bramble.dev/node | xargs docker rm -f')
    await install(machine, packages.agent)
    const identity = JSON.stringify({ nodeName: 'pi-01' })
    await machine.write('/var/lib/bramble/agent/identity.json', identity)
    await machine.run('apt-get purge --yes bramble-agent 2>&1', { withinMs: 120_000 })
    t.equal(await machine.run(networks), '')
  })
})

/**
 * The kernel limits the agent, from its start, to this much memory: by a control group of the test's own, as systemd in a test machine has no
 * memory controller. Resolves with the group; undefined: the machine has none.
 */
async function holdMemory(machine: Machine, mostMiB: number): Promise<string | undefined> {
  const group = '/sys/fs/cgroup/memory/held-agent'
  const make = `mkdir ${group} && echo ${mostMiB * 2 ** 20} > ${group}/memory.limit_in_bytes`
  if ((await machine.tryRun(make)).code !== 0) return undefined
  const command = (await machine.run("sed -n 's/^ExecStart=//p' /lib/systemd/system/bramble-agent.service")).trim()
  const start = `ExecStart=/bin/sh -c 'echo $$$$ > ${group}/cgroup.procs && exec ${command}'`
  await machine.run(`mkdir -p ${dropIns}`)
  await machine.write(`${dropIns}/held.conf`, `[Service]\nExecStart=\n${start}\n`)
  await machine.run('systemctl daemon-reload')
  return group
}

const dropIns = '/etc/systemd/system/bramble-agent.service.d'

/** What takes more than the limit is killed, and the agent was not. Takes the limit away. */
async function isHeld(
  t: Test,
  machine: Machine,
  group: string,
  { pid, most }: { readonly pid: string; readonly most: number },
): Promise<void> {
  t.match((await machine.run(`cat ${group}/cgroup.procs`)).split('\n'), [pid], 'the agent is in the group')
  const peak = Number(await machine.run(`cat ${group}/memory.max_usage_in_bytes`)) / 2 ** 20
  t.ok(peak > 10 && peak <= most, `${Math.round(peak)} MiB at most, with the page cache`)
  const killed = async () => (await machine.run(`cat ${group}/memory.oom_control`)).match(/oom_kill (\d+)/)?.[1]
  t.equal(await killed(), '0', 'nothing was killed')
  const taking = `echo $$ > ${group}/cgroup.procs && head -c ${2 * most}M /dev/zero | tail > /dev/null`
  t.not((await machine.tryRun(taking)).code, 0, 'what takes more is killed')
  t.not(await killed(), '0')
  t.match((await machine.run(`cat ${group}/cgroup.procs`)).split('\n'), [pid], 'and the agent is not')
  await machine.run(`rm -r ${dropIns} && systemctl daemon-reload && systemctl restart bramble-agent && rmdir ${group}`)
}
