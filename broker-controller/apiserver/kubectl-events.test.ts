import { test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

const event = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: 'one', namespace: 'default' },
  eventTime: '2026-01-01T00:00:00.000000Z',
  reportingController: 'example.com/robot',
  reportingInstance: 'robot-1',
  action: 'Look',
  reason: 'Seen',
  regarding: { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'web' },
  note: 'a note',
  type: 'Normal',
}

test('kubectl shows Events of both versions', { skip: whyNoKubectl() }, async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const ok = async (args: readonly string[], input = '') => {
    const ran = await api.kubectl(args, { input })
    t.equal(ran.code, 0, `kubectl ${args.join(' ')} ${ran.stderr}`)
    return ran.stdout
  }
  t.equal(await ok(['create', '-f', '-'], JSON.stringify(event)), 'event.events.k8s.io/one created\n')
  for (const args of [
    ['get', 'events'],
    ['get', 'events.events.k8s.io'],
    ['events', '--for', 'pod/web'],
  ]) {
    t.match(await ok(args), /LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n.* +Normal +Seen +[Pp]od\/web +a note/)
  }
  t.equal(await ok(['get', 'events.events.k8s.io', 'one', '-o', 'jsonpath={.regarding.name}']), 'web')
  t.equal(await ok(['get', 'events', 'one', '-o', 'jsonpath={.involvedObject.name}']), 'web')
  await ok(['label', 'events.events.k8s.io', 'one', 'a=b'])
  await ok(['delete', 'events', '-l', 'a=b'])
  t.equal(await ok(['get', 'events.events.k8s.io', '-o', 'name']), '')
})
