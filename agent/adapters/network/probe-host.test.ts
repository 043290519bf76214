import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { probeHost } from './probe-host.ts'

test('neighbours that have answered are those of links that their address belongs to', async (t) => {
  const root = testFolder(t)
  await mkdir(join(root, 'proc/net'), { recursive: true })
  const rows = [
    'IP address       HW type     Flags       HW address            Mask     Device',
    '127.0.0.7        0x1         0x2         02:00:00:00:00:07     *        lo',
    '127.0.0.7        0x1         0x2         02:00:00:00:00:99     *        pods',
    '127.0.0.8        0x1         0x0         00:00:00:00:00:00     *        lo',
    '192.0.2.9        0x1         0x2         02:00:00:00:00:09     *        lo',
  ]
  await writeFile(join(root, 'proc/net/arp'), `${rows.join('\n')}\n`)
  const host = probeHost(root, async () => undefined)
  t.same([...(await host.neighbours())], [['127.0.0.7', '02:00:00:00:00:07']])
})
