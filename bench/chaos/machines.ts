/** The machines that faults are tried on, and what their containers record. */
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Ending, flashMachine, type Machine } from '../../test/support/machine.ts'
import { machineNetwork } from '../../test/support/machine-network.ts'
import { uptimeS } from '../../test/support/run-records.ts'
import type { ContainerRun } from './outcome.ts'

export const image = 'test/busybox:1'
/** In each machine: a folder of this host, which loses nothing. In containers it is `/chaos`. */
export const sharedFolder = '/root/chaos'
const diskMebibytes = 4096
const recordBytes = 16
/** A run that has ended so long ago belongs to no round any more. */
const endedForS = 10

export type Machines = {
  /** It has the control plane, and no workload. */
  readonly hub: Machine
  readonly workers: readonly Machine[]
  /** The runs of containers that have not been forgotten. */
  runs(): Promise<readonly ContainerRun[]>
  forgetEndedRuns(): Promise<void>
  /** Records that were found missing on volumes so far. */
  lostRecords(): Promise<number>
  /** Brings the image back, as a registry would, where a node has removed it from a full disk. */
  giveImage(machine: Machine): Promise<void>
  /** The machine loses what it has not flushed. What its containers have noted meanwhile is not counted: it may be lost. */
  cutPower(machine: Machine): Promise<void>
}

export type MachinesOptions = {
  readonly folder: string
  readonly workers: number
  /** Decides what a disk keeps when its power is cut. */
  readonly seed: number
  /** Called with the disks before their first boot. */
  readonly prepareHub?: (disk: string) => Promise<void>
  readonly prepareWorker?: (disk: string) => Promise<void>
}

/** Notes when it started, by the kernel's clock that all machines have; then it touches that file five times a second. */
const noteStart = `trap 'exit 0' TERM
file=/chaos/runs/$ROLE~$NODE~$(cat /proc/sys/kernel/random/uuid)
cut -d' ' -f1 /proc/uptime >$file
`

const web = `${noteStart}while touch $file; do sleep 0.2; done
`

/** The same, and writes and syncs numbered records on its volume. At its start all must be there that were synced before. */
const data = `${noteStart}cd /data
synced=$(tail -n 1 /chaos/synced/$ROLE 2>/dev/null)
n=$(($(stat -c %s records 2>/dev/null || echo 0) / ${recordBytes}))
[ $n -ge \${synced:-0} ] || echo $((synced - n)) >>/chaos/lost/$ROLE
truncate -s $((n * ${recordBytes})) records
while n=$((n + 1)); do
  printf '%015d\\n' $n >>records && sync records && echo $n >>/chaos/synced/$ROLE && touch $file || exit 1
  sleep 0.2
done
`

/** A machine for the control plane and some for workloads, switched on, with an image of a static busybox. */
export async function startMachines(ending: Ending, options: MachinesOptions): Promise<Machines> {
  const { folder, seed, prepareHub, prepareWorker } = options
  for (const one of ['runs', 'synced', 'lost']) await mkdir(join(folder, one), { recursive: true })
  await writeFile(join(folder, 'web.sh'), web)
  await writeFile(join(folder, 'data.sh'), data)
  const network = await machineNetwork(ending)
  const names = Array.from({ length: options.workers }, (_, index) => `pi-${index + 1}`)
  const start = async (name: string, index: number, prepare: MachinesOptions['prepareHub']) => {
    const machine = await flashMachine(ending, {
      ...{ name, network, binds: [[folder, sharedFolder]] },
      lossyDisk: { mebibytes: diskMebibytes, seed: seed + index * 1000 },
      ...(prepare && { prepare }),
    })
    await machine.powerOn()
    return machine
  }
  const hub = await start('hub', 0, prepareHub)
  const workers: Machine[] = []
  for (const [index, name] of names.entries()) {
    const worker = await start(name, index + 1, prepareWorker)
    await worker.importImage(image)
    await worker.run('sync')
    workers.push(worker)
  }
  const [runs, synced] = [join(folder, 'runs'), join(folder, 'synced')]
  return {
    hub,
    workers,
    runs: () => readRuns(runs),
    async forgetEndedRuns() {
      const before = (await uptimeS()) - endedForS
      for (const { file, lastS } of await readRuns(runs)) if (lastS < before) await rm(file)
    },
    async lostRecords() {
      const files = (await readdir(join(folder, 'lost'))).map((name) => readFile(join(folder, 'lost', name), 'utf8'))
      const numbers = (await Promise.all(files)).join('').split('\n').map(Number)
      return numbers.reduce((total, one) => total + one, 0)
    },
    async giveImage(machine) {
      const present = await machine.run(`docker images --quiet ${image}`)
      if (present.trim() === '') await machine.importImage(image)
    },
    async cutPower(machine) {
      const before = await Promise.all(
        (await readdir(synced)).map(async (name) => [name, await readFile(join(synced, name), 'utf8')] as const),
      )
      await machine.cutPower()
      const isOnIt = new Set((await readRuns(runs)).flatMap(({ node, role }) => (node === machine.name ? role : [])))
      for (const [name, text] of before) if (isOnIt.has(name)) await writeFile(join(synced, name), text)
    },
  }
}

async function readRuns(folder: string): Promise<readonly (ContainerRun & { readonly file: string })[]> {
  const runs = await Promise.all(
    (await readdir(folder)).map(async (name) => {
      const [role = '', node = ''] = name.split('~')
      const file = join(folder, name)
      const firstS = Number(await readFile(file, 'utf8'))
      const sinceS = (Date.now() - (await stat(file)).mtimeMs) / 1000
      return { role, node, file, firstS, lastS: (await uptimeS()) - sinceS }
    }),
  )
  // The first record of a run is written after its file is made.
  return runs.filter(({ firstS }) => firstS > 0)
}
