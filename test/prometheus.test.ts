/** Debian's Prometheus reads the metrics of nodes through the API, as docs/metrics.md describes. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { freePort } from '../agent/testing/free-port.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { skipWithout } from './support/missing-parts.ts'
import { eventually } from './support/wait.ts'

const skip = skipWithout('prometheus', spawnSync('prometheus', ['--version']).status === 0)

test('a stock Prometheus reads nodes through the proxy', { skip }, async (t) => {
  const { controller, folder, startReady } = await joinedFleet(t)
  await startReady()
  const { kubectl, apiUrl } = controller
  await kubectl('create', 'serviceaccount', 'prometheus')
  await kubectl('create', 'clusterrole', 'prometheus-proxy', '--verb=get', '--resource=nodes/proxy')
  const binding = ['--clusterrole=prometheus-proxy', '--serviceaccount=default:prometheus']
  await kubectl('create', 'clusterrolebinding', 'prometheus-proxy', ...binding)
  const data = ['config', 'view', '--raw', '-o', 'jsonpath={.clusters[0].cluster.certificate-authority-data}']
  await writeFile(join(folder, 'ca.crt'), Buffer.from(await kubectl(...data), 'base64'))
  await writeFile(join(folder, 'token'), (await kubectl('create', 'token', 'prometheus')).trim())
  const { host } = new URL(apiUrl)
  const access = { tls_config: { ca_file: 'ca.crt' }, authorization: { credentials_file: 'token' } }
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
  const port = await freePort()
  const child = spawn(
    'prometheus',
    ['--config.file=prometheus.yml', '--storage.tsdb.path=tsdb', `--web.listen-address=127.0.0.1:${port}`],
    { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let errors = ''
  child.stderr.on('data', (piece: Buffer) => {
    errors += piece.toString()
  })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const query = async (text: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(text)}`)
    const { data } = (await answer.json()) as { data: { result: { metric: object; value: [number, string] }[] } }
    return data.result
  }
  const found = await eventually('the target is up', async () => {
    const result = await query('up{job="kubelet"} == 1')
    return result.length > 0 && result
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${errors}`, { cause: error })
  })
  t.match(found, [{ metric: { node: 'pi-1' }, value: [Number, '1'] }], errors)
  t.match(await query('container_memory_working_set_bytes{id="/",node="pi-1"} > 0'), [{ metric: { job: 'kubelet' } }])
})
