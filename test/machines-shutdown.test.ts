/** A machine that goes down on purpose: its pods stop in order and in time, they are not evicted, and all are back after the boot. */
import { test } from 'tap'
import { bootMachine } from './support/machine.ts'
import { machineNetwork } from './support/machine-network.ts'
import { podManifest } from './support/manifests.ts'
import { hubOn, install, installController, installOnDisk, isNodeReady, testPackages } from './support/packaged.ts'
import { eventually } from './support/wait.ts'

const image = 'test/busybox:1'
const everybody = ['deaf', 'middle', 'plain', 'top']
/** Who bears a node that is away no longer is given up at once, unless the node took leave. */
const forASecond = ['not-ready', 'unreachable'].map((name) => ({
  key: `node.kubernetes.io/${name}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 1,
}))

/** Writes down when it is asked to end, by a clock that continues over boots, and then takes its time; or does not listen. */
function pod(name: string, takesSeconds: number | undefined, spec: object = {}): string {
  const end = takesSeconds === undefined ? ':' : `sleep ${takesSeconds}; echo ${name} ends $(now) >>/order/log; exit 0`
  const command = `now() { cut -d. -f1 /proc/uptime; }; trap 'echo ${name} asked $(now) >>/order/log; ${end}' TERM
    echo ${name} runs >>/order/log; while :; do sleep 0.1; done`
  const volumes = [{ name: 'order', hostPath: { path: '/root/order', type: 'DirectoryOrCreate' } }]
  const container = { volumeMounts: [{ name: 'order', mountPath: '/order' }] }
  return podManifest({ name, image, command: ['sh', '-c', command], spec: { volumes, ...spec }, container })
}

test('a machine goes down on purpose', async (t) => {
  const packages = await testPackages()
  const network = await machineNetwork(t)
  const [home, pi] = await Promise.all([
    bootMachine(t, { name: 'hub', network, prepare: (disk) => installController(disk, packages.controller) }),
    bootMachine(t, { name: 'pi-01', network, prepare: (disk) => installOnDisk(disk, packages.agent) }),
  ])
  await pi.importImage(image)
  const hub = await hubOn(t, home)
  await pi.run(`${await hub.joinLine()} --no-run`)
  await eventually('it is Ready', () => isNodeReady(hub, 'pi-01'))

  const nodeField = (path: string) => hub.kubectl('get', 'node', 'pi-01', '-o', `jsonpath=${path}`)
  const ready = '{.status.conditions[?(@.type=="Ready")].message}'
  const readiness = () => nodeField('{.status.conditions[?(@.type=="GracefulShutdownReady")].message}')
  const order = async () => (await pi.run('cat /root/order/log')).trim().split('\n')
  const phases = () =>
    hub.kubectl(
      ...['get', 'pods', '-o'],
      'jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.status.reason}{"\\n"}{end}',
    )
  const uids = () => hub.kubectl('get', 'pods', '-o', 'jsonpath={.items[*].metadata.uid}')
  const allRun = async (...names: readonly string[]) => {
    const lines = await phases()
    return names.every((name) => lines.includes(`${name} Running \n`)) && isNodeReady(hub, 'pi-01')
  }
  const locks = () => pi.run('systemd-inhibit --list --no-legend')
  const agentJournal = () => pi.journal('bramble-agent')
  const lastLeave = async () => [...(await agentJournal()).matchAll(/Goodbye published (.*)/g)].at(-1)?.[1]
  const goesDownFor = async () =>
    [...(await agentJournal()).matchAll(/Machine is shutting down action=(\S*)/g)].at(-1)?.[1]

  await t.test(
    'without a setting pods share the delay that logind grants, and critical ones have a third of it',
    async (t) => {
      const shares = 'pods have 3 s from priority 0, 1 s from priority 2000000000'
      await eventually(
        'the condition reports it',
        async () => (await readiness()) === `logind waits up to 5 s for the agent; ${shares}`,
      )
      t.match(await locks(), /bramble-agent +0 +root +\d+ +\S+ +shutdown +Pods are stopped in order +delay/)
    },
  )

  await t.test(
    'an agent that is restarted publishes a goodbye, and requests the configured delay, whatever another drop-in sets',
    async (t) => {
      await pi.write(
        '/etc/bramble/agent.yaml',
        JSON.stringify({
          apiVersion: 'bramble.dev/v1alpha1',
          kind: 'AgentConfiguration',
          enableRemoteReboot: true,
          // Several times what who listens takes: a busy machine is slower, and keeps the order.
          shutdownGracePeriodByPodPriority: [
            { priority: 0, shutdownGracePeriodSeconds: 6 },
            { priority: 1000, shutdownGracePeriodSeconds: 7 },
            { priority: 2_000_000_000, shutdownGracePeriodSeconds: 8 },
          ],
        }),
      )
      // As unattended-upgrades brings one, though that grants 30 s.
      await pi.write(
        '/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf',
        '[Login]\nInhibitDelayMaxSec=2\n',
      )
      await pi.run('systemctl kill -s HUP systemd-logind; shutdown -r +10; systemctl restart bramble-agent')
      t.equal(await lastLeave(), 'reason=agent-restart expectedBackSeconds=60')
      await eventually('the condition reports it', async () =>
        (await readiness()).startsWith('logind waits up to 22 s for the agent'),
      )
      const manager = 'org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager'
      t.equal((await pi.run(`busctl get-property ${manager} InhibitDelayMaxUSec`)).trim(), 't 22000000')
      t.match(await readiness(), / a reboot is scheduled for \d{4}-/)
    },
  )

  await t.test('an agent that is upgraded publishes a goodbye', async (t) => {
    await pi.run('shutdown -c')
    await install(pi, packages.laterAgent)
    t.equal(await lastLeave(), 'reason=agent-upgrade expectedBackSeconds=180')
    await eventually('the lock is taken again, and nothing is scheduled any more', async () => {
      return (await locks()).includes('bramble-agent') && !(await readiness()).includes('scheduled')
    })
  })

  await t.test('a reboot waits for the pods: by priority, together within one, each within its share', async (t) => {
    const middle = {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'middle' },
      value: 1000,
    }
    await hub.kubectlWith(JSON.stringify(middle), 'apply', '-f', '-')
    for (const manifest of [
      pod('deaf', undefined),
      pod('plain', 1, { restartPolicy: 'OnFailure', tolerations: forASecond }),
      pod('middle', 2, { priorityClassName: 'middle' }),
      pod('top', 1, { priorityClassName: 'system-node-critical' }),
    ]) {
      await hub.kubectlWith(manifest, 'apply', '-f', '-')
    }
    await eventually('all run', () => allRun(...everybody))
    await eventually('all have begun', async () => (await order()).length === 4)
    const before = await uids()
    const beganMs = performance.now()
    await pi.reboot()
    await eventually('all run again', () => allRun(...everybody))
    t.comment(`all run again ${Math.round(performance.now() - beganMs)} ms after the reboot was asked for`)
    t.equal(await uids(), before, 'the same pods')
    await eventually('the boot was measured', () =>
      pi.tryRun('cat /var/lib/bramble/agent/boot-seconds').then(({ code }) => code === 0),
    )
    const bootSeconds = Number(await pi.run('cat /var/lib/bramble/agent/boot-seconds'))
    t.comment(`from power on to the controller: ${bootSeconds} s`)
    t.ok(bootSeconds >= 1 && bootSeconds < (performance.now() - beganMs) / 1000 + 1, `measured: ${bootSeconds} s`)
    const lines = await order()
    const at = (words: string) => lines.findIndex((line) => line.startsWith(words))
    t.ok(Math.max(at('plain asked'), at('deaf asked')) < at('plain ends'), 'together within a priority')
    t.ok(at('plain ends') < at('middle asked') && at('middle ends') < at('top asked'), 'in order')
    t.ok(at('top ends') > 0, 'the last one had its time')
    t.equal(await goesDownFor(), 'reboot', 'as announced from the start')
    t.match(await lastLeave(), /^reason=reboot expectedBackSeconds=\d+$/)
    const [, left, took] = /Pods stopped for the shutdown left=(\d+) tookMs=(\d+)/.exec(await agentJournal()) ?? []
    t.equal(left, '0')
    // By the clock of the agent: pods write late what they were asked. The others take 3 s of theirs.
    t.ok(Number(took) > 8_500, `a pod that ignores SIGTERM has all of its share of 6 s: ${took} ms`)
    t.ok(Number(took) < 21_000, `within the budget: ${took} ms`)
  })

  await t.test('a reboot on request stops the pods as a local one does, and happens once', async (t) => {
    const request = () =>
      hub.kubectl(
        'annotate',
        'node',
        'pi-01',
        '--overwrite',
        `bramble.dev/reboot-requested-at=${new Date().toISOString()}`,
      )
    const bootID = () => nodeField('{.status.nodeInfo.bootID}')
    const events = () =>
      hub.kubectl('get', 'events', '-o', 'jsonpath={range .items[*]}{.reason} {.message}{"\\n"}{end}')
    const { starts } = pi
    const [uidsBefore, bootBefore] = [await uids(), await bootID()]
    // Another program's lock, as of a package manager: the request waits for it.
    await pi.run(
      'systemd-run --quiet --unit=upgrade systemd-inhibit --what=shutdown --mode=block --who=upgrade sleep infinity',
    )
    await eventually('the lock is held', async () => (await locks()).includes('upgrade'))
    await request()
    await eventually('the lock is in the way', async () => /RebootFailed .*trying again/.test(await events()))
    t.equal(await bootID(), bootBefore)
    await pi.run('systemctl stop upgrade')
    await eventually('the machine has rebooted', async () => (await events()).includes('RebootCompleted'))
    await eventually('all run again', () => allRun(...everybody))
    t.not(await bootID(), bootBefore)
    t.equal(await uids(), uidsBefore, 'the same pods')
    t.equal(await goesDownFor(), 'reboot')
    t.match(await lastLeave(), /^reason=reboot expectedBackSeconds=\d+$/)
    t.notMatch(await events(), /TaintManagerEviction|RebootExpired/)
    // The annotation stays, and the agent receives all that is desired again: nothing restarts.
    await pi.run('systemctl restart bramble-agent')
    await home.run('systemctl restart bramble-controller')
    await eventually('all run', () => allRun(...everybody))
    t.match(await nodeField('{.metadata.annotations}'), /reboot-requested-at.*"state\\":\\"Completed/)
    t.equal(pi.starts, starts + 1, 'one boot')
  })

  await t.test('without native code a process holds the lock', async (t) => {
    const native = (await pi.run('find /usr/lib/bramble-agent -name uwrap.node')).trim()
    t.not(native, '')
    await pi.run(`mv ${native} ${native}.away; systemctl restart bramble-agent`)
    await eventually('the condition reports it', async () => (await readiness()).includes('held by a child process'))
    await pi.run(`mv ${native}.away ${native}`)
    t.match(await locks(), /bramble-agent +0 +root +\d+ +systemd-inhibit +shutdown +Pods are stopped in order +delay/)
    await eventually('the pods are taken up', async () => {
      const [, ...words] = (await agentJournal()).split('Agent starting').at(-1)?.split('Pod changed') ?? []
      return words.length >= everybody.length
    })
  })

  await t.test(
    'a machine that is switched off shows its pods as Kubernetes does, and they are not evicted',
    async (t) => {
      const before = await uids()
      const notReady = hub.kubectl(
        'wait',
        'node/pi-01',
        `--for=jsonpath=${ready}=node is shutting down`,
        '--timeout=60s',
      )
      await Promise.all([notReady, pi.powerOff()])
      const [, left, took] =
        [...(await agentJournal()).matchAll(/Pods stopped for the shutdown left=(\d+) tookMs=(\d+)/g)].at(-1) ?? []
      t.equal(left, '0')
      t.ok(Number(took) > 6_000, 'the process held it until they had stopped')
      t.equal(await goesDownFor(), 'poweroff')
      t.equal(await lastLeave(), 'reason=power-off expectedBackSeconds=600')
      const terminated = everybody.map((name) => `${name} Failed Terminated\n`).join('')
      await eventually('all are terminated', async () => (await phases()) === terminated)
      const path = '{.status.message} {.status.conditions[?(@.type=="DisruptionTarget")].reason}'
      t.equal(
        await hub.kubectl('get', 'pod', 'top', '-o', `jsonpath=${path}`),
        'Pod was terminated in response to imminent node shutdown. TerminationByKubelet',
      )
      await eventually('the node bears the goodbye', async () =>
        (await nodeField('{.metadata.annotations}')).includes('power-off'),
      )
      const events = () => hub.kubectl('get', 'events')
      await eventually('the Event of the node', async () => (await events()).includes('NodeNotReady'))
      await pi.powerOn()
      await eventually('all run again', () => allRun(...everybody))
      t.equal(await uids(), before, 'the same pods')
      await eventually('evictions were due', async () => (await events()).includes('EvictionsHeld'))
      t.notMatch(await events(), /TaintManagerEviction/)
    },
  )

  await t.test('a cancelled shutdown resumes the pods, and the lock is taken again', async (t) => {
    const before = await uids()
    const { starts } = pi
    // Somebody else holds it up for as long as logind lets them: on a slow host, too, it is called off before it is done.
    await pi.run(
      'systemd-run --quiet --unit=somebody systemd-inhibit --what=shutdown --mode=delay --who=somebody sleep infinity',
    )
    await eventually('somebody holds a lock', async () => (await locks()).includes('somebody'))
    await pi.run('systemctl reboot; sleep 1; systemctl restart systemd-logind; systemctl stop somebody')
    await eventually('it is noticed', async () => (await agentJournal()).includes('Shutdown cancelled'))
    await eventually('all run again', () => allRun(...everybody))
    await eventually('the lock is held', async () => (await locks()).includes('bramble-agent'))
    t.equal(pi.starts, starts)
    t.equal(await uids(), before)
    await eventually('the Event is recorded', async () =>
      (await hub.kubectl('get', 'events')).includes('ShutdownCancelled'),
    )
  })

  await t.test(
    'bus, logind and Docker may be restarted: the lock is held, and a shutdown is still announced',
    async () => {
      await pi.run('systemctl restart dbus systemd-logind docker', { withinMs: 120_000 })
      await eventually('it is held', async () => (await locks()).includes('bramble-agent'))
      // A container that ends with its engine and exit code 0 is complete: not the one that is run on failure.
      await eventually('the others run again', () => allRun('deaf', 'middle', 'top'))
      await eventually('the condition reports it', async () =>
        (await readiness()).startsWith('logind waits up to 22 s for the agent'),
      )
      await pi.powerOff()
      await eventually('it is terminated', async () => /top Failed Terminated/.test(await phases()))
    },
  )
})
