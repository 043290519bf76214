import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { brokerCommand } from './broker-command.ts'

async function world(t: Test) {
  const folder = testFolder(t, { data: {}, target: {} })
  const [dataDir, target] = [join(folder, 'data'), join(folder, 'target')]
  const command = async (...args: readonly string[]) => {
    let [out, error] = ['', '']
    const code = await brokerCommand(['configuration', ...args, '--data-dir', dataDir], {
      stdout: (text) => {
        out += text
      },
      stderr: (text) => {
        error += text
      },
      signal: new AbortController().signal,
    })
    return { code, out, error }
  }
  const fill = async () => {
    await mkdir(join(dataDir, 'mosquitto'))
    for (const name of [
      'bramble.conf',
      'access-list',
      'ca.crt',
      'server.crt',
      'server.key',
      'revoked.crl',
      'openssl.cnf',
    ])
      await writeFile(join(dataDir, 'mosquitto', name), name)
  }
  return { folder, target, command, fill }
}

test('the server must be named, and a controller must have written its files', async (t) => {
  const { target, command } = await world(t)
  t.match(await command(target), { code: 64, error: /Name the server with --for mosquitto/ })
  t.match(await command(target, '--for', 'nats'), { code: 64, error: /--for/ })
  t.match(await command(target, '--for', 'mosquitto'), { code: 1, error: /set mqttBroker in the configuration/ })
})

test('files are copied once, and a second run changes nothing', async (t) => {
  const { target, command, fill } = await world(t)
  await fill()
  t.match(await command(target, '--for', 'mosquitto'), { code: 0, out: /access-list.*bramble\.conf written/ })
  t.same(await command(target, '--for', 'mosquitto'), { code: 0, out: `${target} is current.\n`, error: '' })
})

test('a PID file that names another program gets no signal', async (t) => {
  const { folder, target, command, fill } = await world(t)
  await fill()
  const pidFile = join(folder, 'other.pid')
  await writeFile(pidFile, `${process.pid}\n`)
  const refused = await command(target, '--for', 'mosquitto', '--pid-file', pidFile)
  t.match(refused, { code: 1, error: /Mosquitto was not notified: no process of .*other\.pid runs/ })
})
