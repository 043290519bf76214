import { test } from 'tap'
import { mirrorAnnotation } from '../../api/pod.ts'
import { sessionChannels } from '../../api/sessions.ts'
import { aPod } from '../../api/testing/builders.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { type NodePart, playedNodes, reportStatus } from '../testing/played-nodes.ts'
import { runInPod } from './pod-command.ts'
import { podIn } from './pod-in-session.ts'

const pod = { namespace: 'default', pod: 'db-0', uid: 'u-1' }
const what = 'the command "pg_dump app" in the container main of pod db-0'

function run(part: NodePart, timeoutMs = 60_000) {
  const { sessions, requests } = playedNodes({ 'pi-1': part })
  const command = { node: 'pi-1', pod, container: 'main', command: ['pg_dump', 'app'], timeoutMs }
  const done = runInPod(command, { sessions, clock: fakeClock() }, new AbortController().signal)
  return { done, requests }
}

const ending =
  (exitCode: number, ...texts: readonly string[]): NodePart =>
  async (frames) => {
    await reportStatus(frames, { state: 'started' })
    for (const text of texts) await frames.send(sessionChannels.errorOutput, Buffer.from(text))
    await reportStatus(frames, { state: 'ended', exitCode })
  }

test('a command that ends with 0 has done its work', async (t) => {
  const { done, requests } = run(ending(0, 'dumped'))
  await done
  const exec = { container: 'main', command: ['pg_dump', 'app'], stdin: false, stdout: true, stderr: true, tty: false }
  t.same(requests, [{ node: 'pi-1', wanted: { ...pod, exec } }])
})

test('one that fails is named with its code and the end of what it wrote', async (t) => {
  await t.rejects(run(ending(3, 'no ', 'database\n')).done, { message: `${what} ended with 3: no database` })
  const long = await run(ending(1, ...Array.from({ length: 50 }, () => 'x'.repeat(1_000)), 'the reason')).done.catch(
    ({ message }: Error) => message,
  )
  t.match(long, /the reason$/)
  t.ok(String(long).length < 1_200)
})

test('one that cannot be run, is cut, or does not end in time fails', async (t) => {
  const refused = run((frames) =>
    reportStatus(frames, { state: 'refused', reason: 'NotFound', message: 'container main not found' }),
  )
  await t.rejects(refused.done, { message: `${what} was not run: container main not found` })
  await t.rejects(run(async (frames) => frames.end()).done, { message: `${what} was cut` })
  await t.rejects(run(() => new Promise(() => undefined), 10).done, { message: /did not end/ })
})

test('a mirror pod is asked for by the uid of its static pod', async (t) => {
  const mirror = aPod({ name: 'etcd', uid: 'of-the-api' })
  t.match(podIn(mirror), { pod: 'etcd', uid: 'of-the-api' })
  const annotated = { ...mirror, metadata: { ...mirror.metadata, annotations: { [mirrorAnnotation]: 'of-the-node' } } }
  t.match(podIn(annotated), { pod: 'etcd', uid: 'of-the-node' })
})
