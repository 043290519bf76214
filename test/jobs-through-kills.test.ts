/** Jobs while their controller is killed, with the real kubectl, agent and engine. */
import { randomInt } from 'node:crypto'
import tap, { test } from 'tap'
import type { Job } from '../api/batch/job.ts'
import type { Pod } from '../api/pod.ts'
import { seededRandom } from '../daemon/testing/seeded-random.ts'
import { whyNoDockerd } from './support/dockerd.ts'
import type { Controller } from './support/fleet.ts'
import { jobManifest } from './support/jobs.ts'
import { joinedFleet } from './support/joined-fleet.ts'

tap.setTimeout(900_000)

const kills = 50
/** Requests that a controller answers before it is killed: some 100 ms each, so all parts of a visit are hit. */
const mostAnswers = 10
const finalizer = 'batch.kubernetes.io/job-tracking'

test('through fifty SIGKILLs of the controller, each pod of a Job is counted once', {
  skip: whyNoDockerd(),
}, async (t) => {
  const seed = Number(process.env['BRAMBLE_SEED'] ?? randomInt(2 ** 31))
  t.comment(`BRAMBLE_SEED=${seed}`)
  const random = seededRandom(seed)
  const fleet = await joinedFleet(t)
  let { controller } = fleet
  await fleet.startReady()
  const job = async (name: string): Promise<Job> =>
    JSON.parse(await controller.kubectl('get', 'job', name, '-o', 'json'))
  const names: string[] = []
  // A sixth of the pods fail; each is done again.
  const script = '[ $(( $(od -An -N1 -tu1 /dev/urandom) % 6 )) -ne 0 ]'
  const begin = async () => {
    const name = `work-${names.length}`
    names.push(name)
    const spec = { completions: 20, parallelism: 4, backoffLimit: 1000 }
    await controller.kubectlWith(jobManifest(name, script, spec), 'apply', '-f', '-')
    return name
  }
  const isDone = async (name: string) => (await job(name)).status?.completionTime !== undefined

  let current = await begin()
  for (let kill = 1; kill <= kills; kill++) {
    if (await isDone(current)) current = await begin()
    for (let answers = Math.floor(random() * mostAnswers); answers > 0; answers--) await job(current)
    controller.program.kill('SIGKILL')
    await controller.program.ended
    controller = await fleet.controllerAgain()
  }
  t.comment(`${names.length} Jobs`)
  for (const name of names) {
    await controller.kubectl('wait', '--for=condition=Complete', `job/${name}`, '--timeout=600s')
    await counted(t, controller, name, await job(name))
  }
})

/** The pods stay when they have ended: their number is the truth. */
async function counted(t: Pick<typeof tap, 'same' | 'notOk'>, { kubectl }: Controller, name: string, job: Job) {
  const pods: readonly Pod[] = JSON.parse(await kubectl('get', 'pods', '-l', `job-name=${name}`, '-o', 'json')).items
  const ended = (phase: string) => pods.filter(({ status }) => status?.phase === phase).length
  const { succeeded = 0, failed = 0, active = 0, uncountedTerminatedPods } = job.status ?? {}
  t.same({ succeeded, failed, active }, { succeeded: 20, failed: ended('Failed'), active: 0 }, name)
  t.same(ended('Succeeded'), 20, `${name}: no pod too many`)
  t.same(pods.length, succeeded + failed, name)
  t.same(uncountedTerminatedPods, {}, name)
  t.notOk(
    pods.some(({ metadata }) => metadata.finalizers?.includes(finalizer)),
    name,
  )
}
