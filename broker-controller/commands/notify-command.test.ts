import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { messageReceiver } from '../integrations/notifications/testing/receiver.ts'
import { notifyCommand } from './notify-command.ts'

async function run(t: Test, channels: readonly object[], ...args: readonly string[]) {
  const config = join(testFolder(t), 'controller.yaml')
  const file = { apiVersion: 'bramble.dev/v1alpha1', kind: 'ControllerConfiguration', notify: { channels } }
  await writeFile(config, JSON.stringify(file))
  let [stdout, stderr] = ['', '']
  const output = {
    stdout: (text: string) => {
      stdout += text
    },
    stderr: (text: string) => {
      stderr += text
    },
    signal: new AbortController().signal,
  }
  const code = await notifyCommand(['test', '--config', config, ...args], output)
  return { code, stdout, stderr }
}

test('a test reaches every channel of the configuration', async (t) => {
  const [phone, tablet] = [await messageReceiver(t), await messageReceiver(t)]
  const channels = [
    { name: 'phone', type: 'ntfy', url: phone.url },
    { name: 'tablet', type: 'ntfy', url: tablet.url },
  ]
  t.same(await run(t, channels), { code: 0, stdout: 'phone: sent\ntablet: sent\n', stderr: '' })
  const titles = [phone, tablet].map(({ received }) => received.map(({ headers }) => headers['title']))
  t.same(titles, [['Test of notifications'], ['Test of notifications']])
  t.match(await run(t, channels, '--channel', 'tablet'), { stdout: 'tablet: sent\n' })
  t.equal(phone.received.length, 1)
})

test('a channel that does not work is named, with the reason and without its URL', async (t) => {
  const { url } = await messageReceiver(t, (response) => response.writeHead(403).end())
  const { code, stderr } = await run(t, [{ name: 'phone', type: 'ntfy', url }])
  t.not(code, 0)
  t.match(stderr, /Cannot notify phone: the server answered 403/)
  t.notMatch(stderr, /secret-topic/)
})

test('a configuration without the channel, and one that is not valid, are refused', async (t) => {
  t.match(await run(t, []), { stderr: /There is no channel in / })
  t.match(await run(t, [{ name: 'phone', type: 'ntfy', url: 'https://ntfy.sh/a' }], '--channel', 'tv'), {
    stderr: /There is no channel tv in /,
  })
  t.match(await run(t, [{ name: 'phone', type: 'ntfy' }]), { stderr: /notify\.channels\[0\]\.url: name either/ })
})
