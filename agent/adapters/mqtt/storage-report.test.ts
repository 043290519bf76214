import { test } from 'tap'
import { storageReport } from './storage-report.ts'

test('volumes are reported to a controller that reads them, at each connection and on change', async (t) => {
  const report = storageReport('topic')
  const published: string[] = []
  const link = { publish: async (_topic: string, body: string) => void published.push(body), abandon: () => undefined }
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  report.opened(link)
  report.received({ contents: true })
  report.report({ done: ['a'], refused: [] })
  t.same(published, [], 'an earlier controller')
  report.received({ volumes: true })
  await settle()
  report.report({ done: ['b'], refused: [] })
  await settle()
  report.closed()
  report.report({ done: ['c'], refused: [] })
  report.opened(link)
  report.received({ volumes: true })
  await settle()
  t.same(
    published.map((body) => JSON.parse(body).done),
    [['a'], ['b'], ['c']],
  )
})
