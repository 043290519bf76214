/** Debian's Prometheus reads the metrics of nodes through the API, as docs/metrics.md describes. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { joinedFleet } from './support/joined-fleet.ts'
import { metricsAccount, skipWithoutPrometheus, startPrometheus } from './support/prometheus.ts'
import { eventually } from './support/wait.ts'

test('a stock Prometheus reads nodes through the proxy', { skip: skipWithoutPrometheus }, async (t) => {
  const { controller, folder, startReady } = await joinedFleet(t)
  await startReady()
  await metricsAccount(controller, folder)
  const { host } = new URL(controller.apiUrl)
  const access = { tls_config: { ca_file: 'ca.crt' }, authorization: { credentials_file: 'prometheus.token' } }
  // Debian builds it without the discovery of Kubernetes: the name of the node is what the file lists.
  const nodeName = { source_labels: ['node'] }
  const path = { target_label: '__metrics_path__', replacement: '/api/v1/nodes/$1/proxy/metrics/cadvisor' }
  const job = {
    job_name: 'kubelet',
    scheme: 'https',
    scrape_interval: '1s',
    ...access,
    static_configs: [{ targets: ['proxied'], labels: { node: 'pi-1' } }],
    relabel_configs: [
      { target_label: '__address__', replacement: host },
      { ...nodeName, ...path },
    ],
  }
  // JSON is YAML.
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify({ scrape_configs: [job] }))
  const prometheus = await startPrometheus(t, folder)
  const found = await eventually('the target is up', async () => {
    const result = await prometheus.query('up{job="kubelet"} == 1')
    return result.length > 0 && result
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${prometheus.errors()}`, { cause: error })
  })
  t.match(found, [{ metric: { node: 'pi-1' }, value: [Number, '1'] }], prometheus.errors())
  // Samples end with the next scrape that fails, as one does that takes longer than its interval.
  const memory = await eventually('the memory of the node', async () => {
    const result = await prometheus.query('container_memory_working_set_bytes{id="/",node="pi-1"} > 0')
    return result.length > 0 && result
  })
  t.match(memory, [{ metric: { job: 'kubelet' } }])
})
