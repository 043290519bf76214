/**
 * A machine whose power is cut again and again, with no controller and no network, be it that no packet comes back or that the
 * cable is out: its pods come back each time.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { fileCheckpoint } from '../agent/adapters/disk/checkpoint.ts'
import { writeIdentity } from '../agent/join/identity.ts'
import type { Pod } from '../api/pod.ts'
import { openAuthority } from '../certs/authority.ts'
import { issueNode } from '../certs/issue.ts'
import { quietLog } from '../daemon/testing/quiet-log.ts'
import { seededRandom } from '../daemon/testing/seeded-random.ts'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { flashMachine, type Machine } from './support/machine.ts'
import { installOnDisk, testPackages } from './support/packaged.ts'
import { eventually } from './support/wait.ts'

const dataDir = '/var/lib/bramble/agent'
const image = 'test/busybox:1'
const cuts = 20
/** The same moments at each run. */
const moments = seededRandom(4711)

test('power cuts', async (t) => {
  const packages = await testPackages()
  const machine = await flashMachine(t, {
    name: 'pi-01',
    async prepare(disk) {
      await installOnDisk(disk, packages.agent)
      await writeFile(`${disk}/etc/resolv.conf`, 'nameserver 192.0.2.53\n')
    },
  })
  await giveIdentity(machine, testFolder(t))
  const pods = ['a', 'b', 'c'].map((name) => aPod(name, 'trap "exit 0" TERM; while :; do sleep 1; done'))
  const checkpoint = () => fileCheckpoint(machine.disk(`${dataDir}/desired.json`), quietLog(t))
  const want = (wanted: readonly Pod[], version: number) =>
    checkpoint().save({ desired: { epoch: 'one', version, pods: wanted }, endings: {} })

  await machine.powerOn()
  await machine.importImage(image)
  await machine.powerOff()
  await want(pods, 1)

  await t.test('after a start they run', async (t) => {
    const { sinceBootS, sinceDockerS } = await comeBack(machine, pods)
    t.comment(`All pods run ${sinceBootS.toFixed(1)} s after the start, ${sinceDockerS.toFixed(1)} s after Docker`)
    t.ok(sinceDockerS < 30)
    const [first] = (await machine.run('docker ps --quiet --filter label=io.kubernetes.container.name=main')).split(
      '\n',
    )
    t.equal(
      (await machine.run(`docker exec ${first} sh -c 'echo $HOST_IP'`)).trim(),
      machine.address,
      'distinct from the first',
    )
  })

  // They ran: where the registry does not answer they are run from what is here.
  await want(pods.map(pulledAlways), 2)
  await machine.losePackets()

  await t.test('and after each of many cuts at any moment', async (t) => {
    const seconds: number[] = []
    for (let cut = 1; cut <= cuts; cut++) {
      if (machine.initPid !== undefined) await machine.cutPower()
      if (cut === cuts) await machine.unplug()
      if (cut % 10 === 0) {
        const { sinceDockerS } = await comeBack(machine, pods)
        seconds.push(sinceDockerS)
        t.same(await runningPods(machine), ['a', 'b', 'c'])
        t.notMatch(await agentFiles(machine), /unreadable/, 'nothing was renamed')
        await delay(moments() * 1_000)
      } else {
        const booting = machine.powerOn().catch(() => undefined)
        await eventually('it is on', () => machine.initPid !== undefined)
        await delay(moments() * 3_000)
        await machine.cutPower()
        await booting
      }
    }
    t.comment(`Seconds from Docker to all pods: ${seconds.map((one) => one.toFixed(1)).join(', ')}`)
    t.ok(Math.max(...seconds) < 30, 'half a minute at most')
    t.notMatch(await readFile(machine.disk(`${dataDir}/boot-id`), 'utf8'), /held/, 'no pod is blamed for it')
  })

  await t.test('what a card damaged is renamed and logged, and what runs is left alone', async (t) => {
    const running = () => machine.run('docker ps --quiet --no-trunc')
    const before = await running()
    await machine.run(
      `systemctl stop bramble-agent; cd ${dataDir}; printf x | dd of=desired.json bs=1 seek=300 conv=notrunc
      truncate -s 300 identity.json; systemctl start bramble-agent`,
    )
    const journal = async () => (await machine.journal('bramble-agent')).split('Agent starting').at(-1) ?? ''
    await eventually('the machine was looked at', async () => /reason=NodeReady/.test(await journal()))
    await machine.run('systemctl stop bramble-agent')
    t.equal(await running(), before, 'no container was stopped, removed or added')
    t.match(await agentFiles(machine), /desired\.json\.unreadable,.*identity\.json,.*identity\.json\.unreadable/)
    t.match(await journal(), /The checkpoint cannot be used .*checksum does not match/)
    t.match(await machine.journal('bramble-agent'), /The identity of this node is damaged, its copy is used/)
  })

  await t.test('of a checkpoint that is damaged the copy restores the pods without a controller', async (t) => {
    await machine.cutPower()
    await want(pods, 2)
    await checkpoint().keepCopy()
    await writeFile(machine.disk(`${dataDir}/desired.json`), 'damaged')
    const { sinceDockerS } = await comeBack(machine, pods)
    t.ok(sinceDockerS < 30)
    t.match(await machine.journal('bramble-agent'), /Using the copy of the checkpoint/)
  })

  await t.test('a pod that takes the machine down is held back, the others run', async (t) => {
    if (machine.initPid !== undefined) await machine.cutPower()
    // The call ends the name space of processes it is made in, as a kernel that panics ends a machine.
    const bad = aPod('bad', 'sleep 1; reboot -f', {
      hostPID: true,
      capabilities: { add: ['SYS_BOOT'] },
    })
    const uid = bad.metadata.uid ?? ''
    await want([...pods, bad], 3)
    // One death is left until it is proven.
    const earlier = [' controlled', '', ''].map((more, index) => `boot-${5 - index} trial=${uid} began${more}`)
    await writeFile(machine.disk(`${dataDir}/boot-id`), [...earlier, `boot-2 last=${uid}`, 'boot-1', ''].join('\n'))
    const before = machine.starts
    // It may go down before its boot is complete.
    await machine.powerOn().catch(() => undefined)
    await eventually('it has gone down and started again', () => machine.starts >= before + 2)
    // It boots meanwhile.
    await eventually('the others run', async () => (await runningPods(machine)).join() === 'a,b,c', {
      withinMs: 180_000,
    })
    await eventually('it is recorded', async () =>
      (await machine.run(`cat ${dataDir}/boot-id`)).includes(`held ${uid}`),
    )
    t.equal(machine.starts, before + 2)
  })
})

/** Boots it, and waits for the pods. Seconds since its process 1 started, and since its Docker was ready. */
async function comeBack(machine: Machine, pods: readonly Pod[]) {
  await machine.powerOn()
  await eventually('all pods run', async () => (await runningPods(machine)).length === pods.length, {
    withinMs: 90_000,
    everyMs: 100,
  })
  const nowS = Number((await machine.run('cat /proc/uptime')).split(' ')[0])
  const enteredS = async (what: string) =>
    Number((await machine.run(`systemctl show ${what} --value`)).trim() || 0) / 1e6
  const dockerS = await enteredS('docker.service -p ActiveEnterTimestampMonotonic')
  const bootS = await enteredS('-p UserspaceTimestampMonotonic')
  return { sinceBootS: nowS - bootS, sinceDockerS: nowS - dockerS }
}

async function runningPods(machine: Machine): Promise<readonly string[]> {
  const { stdout } = await machine.tryRun(
    `docker ps --filter label=io.kubernetes.container.name=main --format '{{.Label "io.kubernetes.pod.name"}}'`,
  )
  return stdout.split('\n').filter(Boolean).sort()
}

async function agentFiles(machine: Machine): Promise<string> {
  return (await machine.run(`ls ${dataDir}`)).trim().split('\n').join()
}

function aPod(
  name: string,
  script: string,
  { hostPID, capabilities }: { readonly hostPID?: boolean; readonly capabilities?: { readonly add: string[] } } = {},
): Pod {
  const uid = `uid-of-${name}`
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid, creationTimestamp: '2026-01-01T00:00:00Z', resourceVersion: '1' },
    spec: {
      nodeName: 'pi-01',
      terminationGracePeriodSeconds: 2,
      ...(hostPID && { hostPID }),
      containers: [
        {
          name: 'main',
          image,
          imagePullPolicy: 'IfNotPresent',
          command: ['sh', '-c', script],
          env: [{ name: 'HOST_IP', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } }],
          ...(capabilities && { securityContext: { capabilities } }),
        },
      ],
    },
  }
}

function pulledAlways(pod: Pod): Pod {
  const containers = pod.spec.containers.map((one) => ({ ...one, imagePullPolicy: 'Always' as const }))
  return { ...pod, spec: { ...pod.spec, containers } }
}

async function giveIdentity(machine: Machine, folder: string): Promise<void> {
  const authority = await openAuthority(`${folder}/authority`, Date.now())
  const keys = issueNode(authority, { nodeName: 'pi-01', nowMs: Date.now() })
  await mkdir(dirname(machine.disk(dataDir)), { recursive: true })
  await writeIdentity(machine.disk(dataDir), {
    nodeName: 'pi-01',
    apiUrl: 'https://controller.example:6443',
    mqttUrl: 'mqtts://controller.example:8883',
    ca: authority.certificate,
    ...keys,
  })
}
