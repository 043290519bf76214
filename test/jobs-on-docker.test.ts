/** Jobs and CronJobs with the real kubectl, controller, agent and engine. */
import tap, { test } from 'tap'
import type { CronJob } from '../api/batch/cron-job.ts'
import type { Job } from '../api/batch/job.ts'
import type { Pod } from '../api/pod.ts'
import { whyNoDockerd } from './support/dockerd.ts'
import { jobManifest } from './support/jobs.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

tap.setTimeout(900_000)

test('kubectl creates, waits for and describes Jobs and CronJobs', { skip: whyNoDockerd() }, async (t) => {
  const fleet = await joinedFleet(t)
  const { kubectl, kubectlWith, tryKubectl } = fleet.controller
  await fleet.startReady()
  const json = async <T>(...args: readonly string[]): Promise<T> =>
    JSON.parse(await kubectl('get', ...args, '-o', 'json'))

  /** Events are written after what they are about. */
  const described = (name: string, event: RegExp) =>
    eventually(`${name}: ${event}`, async () => event.test(await kubectl('describe', name)))

  await t.test('a CronJob is created, and listed', async (t) => {
    await kubectl('create', 'cronjob', 'tick', `--image=${image}`, '--schedule=* * * * *', '--', 'date')
    t.match(
      await kubectl('get', 'cronjobs'),
      // A minute may have begun since it was created.
      /NAME +SCHEDULE +TIMEZONE +SUSPEND +ACTIVE +LAST SCHEDULE +AGE\ntick +\* \* \* \* \* +<none> +False +(0 +<none>|[01] +\d+s) +\d+s\n/,
    )
  })

  await t.test('a Job from the command line runs to its end', async (t) => {
    await kubectl('create', 'job', 'hello', `--image=${image}`, '--', 'sh', '-c', 'echo hello from a job')
    await kubectl('wait', '--for=condition=Complete', 'job/hello', '--timeout=90s')
    t.match(await kubectl('logs', 'job/hello'), /^hello from a job$/m)
    t.match(
      await kubectl('get', 'job', 'hello'),
      /NAME +STATUS +COMPLETIONS +DURATION +AGE\nhello +Complete +1\/1 +\d+s/,
    )
    t.match(
      await kubectl('get', 'job', 'hello', '-o', 'wide'),
      /CONTAINERS +IMAGES +SELECTOR\n.*hello +test\/busybox:1 +batch/,
    )
    const text = await kubectl('describe', 'job', 'hello')
    t.match(text, /Pods Statuses: +0 Active \(0 Ready\) \/ 1 Succeeded \/ 0 Failed/)
    t.match(text, /SuccessfulCreate .*job-controller +Created pod: hello-/)
    await described('job/hello', /Completed .*Job completed/)
  })

  await t.test('an indexed Job gives each pod its index, in the environment and in its name', async (t) => {
    const script = 'echo "$JOB_COMPLETION_INDEX on $(hostname)"'
    const spec = { completions: 3, parallelism: 3, completionMode: 'Indexed' }
    await kubectlWith(jobManifest('parts', script, spec), 'apply', '-f', '-')
    await kubectl('wait', '--for=condition=Complete', 'job/parts', '--timeout=90s')
    const logs = await kubectl('logs', '-l', 'job-name=parts')
    t.same(logs.trim().split('\n').sort(), ['0 on parts-0', '1 on parts-1', '2 on parts-2'])
    await described('job/parts', /Completed Indexes: +0-2/)
  })

  await t.test('a Job that fails states the reason', async () => {
    await kubectlWith(jobManifest('broken', 'exit 3', { backoffLimit: 0 }), 'apply', '-f', '-')
    await kubectl('wait', '--for=condition=Failed', 'job/broken', '--timeout=90s')
    await described('job/broken', /BackoffLimitExceeded .*Job has reached the specified backoff limit/)
  })

  await t.test('a running Job is suspended, resumed and ended by its deadline', async (t) => {
    await kubectlWith(jobManifest('long', 'trap "exit 0" TERM; while :; do sleep 0.1; done'), 'apply', '-f', '-')
    const ready = async () => (await json<Job>('job', 'long')).status?.ready
    await eventually('its pod is ready', async () => (await ready()) === 1, { withinMs: 90_000 })
    await kubectl('patch', 'job', 'long', '-p', '{"spec":{"suspend":true}}')
    await kubectl('wait', '--for=condition=Suspended', 'job/long', '--timeout=60s')
    await kubectl('wait', '--for=delete', 'pod', '-l', 'job-name=long', '--timeout=60s')
    t.match(await kubectl('get', 'job', 'long'), /long +Suspended +0\/1/)
    await kubectl('patch', 'job', 'long', '-p', '{"spec":{"suspend":false,"activeDeadlineSeconds":5}}')
    await kubectl('wait', '--for=condition=Failed', 'job/long', '--timeout=90s')
    await described('job/long', /DeadlineExceeded/)
  })

  await t.test('a Job is deleted with its pods, before them, or without them', async (t) => {
    const pods = async (name: string) => (await json<{ items: Pod[] }>('pods', '-l', `job-name=${name}`)).items
    for (const [name, cascade] of [
      ['a', 'background'],
      ['b', 'foreground'],
      ['c', 'orphan'],
    ] as const) {
      await kubectlWith(jobManifest(name, 'exit 0'), 'apply', '-f', '-')
      await kubectl('wait', '--for=condition=Complete', `job/${name}`, '--timeout=90s')
      await kubectl('delete', 'job', name, `--cascade=${cascade}`, '--timeout=60s')
      if (cascade === 'orphan') {
        t.equal((await pods(name)).length, 1)
        t.same((await pods(name))[0]?.metadata.ownerReferences ?? [], [])
      } else await eventually(`no pod of ${name}`, async () => (await pods(name)).length === 0)
    }
  })

  await t.test('a finished Job goes after its time to live', async () => {
    await kubectlWith(jobManifest('brief', 'exit 0', { ttlSecondsAfterFinished: 1 }), 'apply', '-f', '-')
    await eventually('it is gone', async () => (await tryKubectl('get', 'job', 'brief')).code !== 0, {
      withinMs: 90_000,
    })
  })

  await t.test('the CronJob has created Jobs meanwhile, and kubectl creates one from it', async (t) => {
    await kubectl('create', 'job', 'by-hand', '--from=cronjob/tick')
    await kubectl('wait', '--for=condition=Complete', 'job/by-hand', '--timeout=90s')
    const { metadata } = await json<CronJob>('cronjob', 'tick')
    const own = async () => {
      const { items } = await json<{ items: Job[] }>('jobs')
      return items.filter((job) => /^tick-\d+$/.test(job.metadata.name ?? ''))
    }
    const [first] = await eventually(
      'the minute is over',
      async () => {
        const jobs = await own()
        return jobs.some((job) => job.status?.succeeded === 1) && jobs
      },
      { withinMs: 150_000 },
    )
    t.equal(first?.metadata.ownerReferences?.[0]?.uid, metadata.uid)
    await described('cronjob/tick', /SuccessfulCreate .*cronjob-controller +Created job tick-/)
    await eventually('its success is noted', async () => {
      return (await json<CronJob>('cronjob', 'tick')).status?.lastSuccessfulTime !== undefined
    })
    await kubectl('patch', 'cronjob', 'tick', '-p', '{"spec":{"suspend":true}}')
    await kubectl('delete', 'cronjob', 'tick')
    await eventually('its Jobs and their pods go with it', async () => {
      const { items } = await json<{ items: Pod[] }>('pods')
      return (await own()).length === 0 && !items.some((pod) => pod.metadata.name?.startsWith('tick-'))
    })
  })
})
