/**
 * Who ran when: containers write the time of their start, and then five times a second, into a folder that all test machines share. The
 * clock is that of this host's kernel, which all of them have.
 */
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** One run of a container: from its first record to its last, in seconds of the kernel's clock. */
export type Run = {
  readonly pod: string
  readonly uid: string
  readonly run: string
  readonly firstS: number
  readonly lastS: number
}

const inside = '/records'

/** Specification of a pod with one container by the name `main`. `folder`: on the machine. */
export function recordedPod(folder: string, image: string) {
  const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })
  const script = `now() { cut -d' ' -f1 /proc/uptime; }; trap 'now >>$file; exit 0' TERM
    file=${inside}/$POD~$UID~$(cat /proc/sys/kernel/random/uuid); while :; do now >>$file; sleep 0.2; done`
  return {
    terminationGracePeriodSeconds: 1,
    automountServiceAccountToken: false,
    volumes: [{ name: 'records', hostPath: { path: folder } }],
    containers: [
      {
        name: 'main',
        image,
        imagePullPolicy: 'Never',
        command: ['sh', '-c', script],
        env: [field('POD', 'metadata.name'), field('UID', 'metadata.uid')],
        volumeMounts: [{ name: 'records', mountPath: inside }],
      },
    ],
  }
}

/** All runs so far, the earliest first. */
export async function runsIn(folder: string): Promise<readonly Run[]> {
  await mkdir(folder, { recursive: true })
  const runs = await Promise.all(
    (await readdir(folder)).map(async (name): Promise<readonly Run[]> => {
      const [pod = '', uid = '', run = ''] = name.split('~')
      const times = (await readFile(join(folder, name), 'utf8')).split('\n').filter(Boolean).map(Number)
      const [firstS, lastS] = [times.at(0), times.at(-1)]
      return firstS === undefined || lastS === undefined ? [] : [{ pod, uid, run, firstS, lastS }]
    }),
  )
  return runs.flat().sort((a, b) => a.firstS - b.firstS)
}

/** Two runs at one time, of those that `by` gives the same name. */
export function overlaps(runs: readonly Run[], by: (run: Run) => string): readonly string[] {
  return runs.flatMap((one, index) =>
    runs
      .slice(index + 1)
      .filter((other) => by(one) === by(other) && other.firstS <= one.lastS && one.firstS <= other.lastS)
      .map((other) => `${by(one)}: ${one.firstS} to ${one.lastS}, and ${other.firstS} to ${other.lastS}`),
  )
}

/** Seconds of the same clock. */
export async function uptimeS(): Promise<number> {
  return Number((await readFile('/proc/uptime', 'utf8')).split(' ')[0])
}
