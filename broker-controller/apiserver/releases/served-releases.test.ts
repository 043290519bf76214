/** What a controller is given to serve is reached over HTTPS, by those who may read it. */
import { test } from 'tap'
import { administrator } from '../../../api/identity.ts'
import { releasePath } from '../../../api/node/release-paths.ts'
import { apiClient } from '../../../daemon/api-client.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { startApi } from '../../testing/api-under-test.ts'

const digest = 'a'.repeat(64)
const node = { user: 'system:node:pi-1', groups: ['system:nodes'] }

test('files of releases are for nodes, and the backups of the fleet for administrators', async (t) => {
  const content = Buffer.from('{"version":"1.5.0"}')
  const api = await startApi({
    log: quietLog(t),
    over: {
      releases: {
        read: async ({ file }) => (file === 'release.json' ? { size: content.length, bytes: content } : undefined),
      },
      backups: async () => ({ backups: [], problems: [] }),
    },
  })
  t.teardown(api.stop)
  const ca = api.authority.certificate
  const asNode = apiClient({ url: api.url, ca, ...api.issueFor(node) })
  const asAdministrator = apiClient({ url: api.url, ca, ...api.issueFor(administrator) })
  const path = releasePath({ digest, file: 'release.json' })
  t.match(await asNode.get(path), { status: 200, body: { version: '1.5.0' } })
  t.match(await asNode.get(releasePath({ digest, file: 'other' })), { status: 404 })
  t.match(await asAdministrator.get(path), { status: 403 })
  t.match(await apiClient({ url: api.url, ca }).get(path), { status: 403 })
  t.match(await asNode.get('/backups'), { status: 403 })
  t.match(await asAdministrator.get('/backups'), { status: 200 })
})
