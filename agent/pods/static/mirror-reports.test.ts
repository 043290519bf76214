import { test } from 'tap'
import type { Event } from '../../../api/event.ts'
import type { PodPhase } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { mirrorReporter } from './mirror-reports.ts'

function reporter(...statics: readonly string[]) {
  const sent: string[] = []
  const reports = mirrorReporter({
    reportPod: ({ uid, observedResourceVersion, status }) =>
      sent.push(`${uid}@${observedResourceVersion} ${status.phase}`),
    reportPodGone: (uid) => sent.push(`${uid} gone`),
    reportEvent: ({ reason }) => sent.push(`event ${reason}`),
  })
  reports.setStatic(new Set(statics))
  return {
    reports,
    /** What was sent since the last call. */
    sent: () => sent.splice(0),
    pod: (uid: string, phase: PodPhase = 'Running') =>
      reports.reportPod({ uid, namespace: 'default', name: 'web', observedResourceVersion: '', status: { phase } }),
    event: (uid: string, reason: string) => {
      const event: Event = { apiVersion: 'v1', kind: 'Event', metadata: {}, involvedObject: { uid }, reason }
      reports.reportEvent(event)
    },
  }
}
const mirror = (hash: string, uid: string, resourceVersion = '7') =>
  aPod({ uid, annotations: { 'kubernetes.io/config.mirror': hash }, metadata: { resourceVersion } })

test('pods of the API are reported as they are', async (t) => {
  const { reports, sent, pod, event } = reporter('a')
  pod('u')
  event('u', 'Started')
  reports.reportPodGone('u')
  t.same(sent(), ['u@ Running', 'event Started', 'u gone'])
})

test('a static pod is reported under the UID and version of its mirror, once there is one', async (t) => {
  const { reports, sent, pod, event } = reporter('a')
  pod('a', 'Pending')
  event('a', 'Pulled')
  event('a', 'Started')
  pod('a')
  t.same(sent(), [])
  reports.setMirrors([mirror('a', 'm')])
  t.same(sent(), ['event Pulled', 'event Started', 'm@7 Running'], 'the newest status, after all Events')
  pod('a', 'Failed')
  event('a', 'Killing')
  t.same(sent(), ['m@7 Failed', 'event Killing'])
  reports.setMirrors([mirror('a', 'm', '8')])
  t.same(sent(), [], 'the same mirror')
  pod('a')
  t.same(sent(), ['m@8 Running'])
})

test('a mirror that is made again gets the last status, and the one before is gone', async (t) => {
  const { reports, sent, pod, event } = reporter('a')
  pod('a')
  reports.setMirrors([mirror('a', 'm1')])
  sent()
  reports.setMirrors([mirror('a', 'm2')])
  t.same(sent(), ['m1 gone', 'm2@7 Running'])
  reports.setMirrors([])
  event('a', 'Killing')
  pod('a', 'Failed')
  t.same(sent(), ['m2 gone'])
  reports.setMirrors([mirror('a', 'm3'), mirror('other', 'm4')])
  t.same(sent(), ['event Killing', 'm3@7 Failed'])
})

test('a static pod that is gone takes its mirror’s report with it', async (t) => {
  const { reports, sent, pod } = reporter('a', 'b')
  reports.setMirrors([mirror('a', 'm')])
  pod('a')
  sent()
  reports.reportPodGone('a')
  t.same(sent(), ['m gone'])
  reports.reportPodGone('b')
  t.same(sent(), [], 'it never had a mirror')
  reports.setStatic(new Set())
  reports.setStatic(new Set(['a']))
  reports.setMirrors([mirror('a', 'm2')])
  t.same(sent(), ['m gone'], 'nothing of the pod before it')
})

test('of many Events of a pod without a mirror the last twenty wait', async (t) => {
  const { reports, sent, event } = reporter('a')
  for (let index = 1; index <= 25; index++) event('a', `E${index}`)
  reports.setMirrors([mirror('a', 'm')])
  const events = sent()
  t.same([events.length, events[0], events.at(-1)], [20, 'event E6', 'event E25'])
})
