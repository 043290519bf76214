import { test } from 'tap'
import { systemClock } from '../../daemon/clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { kubernetesServiceController } from '../controllers/kubernetes-service-controller.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

test('kubectl creates, prints, exposes and changes Services', { skip: whyNoKubectl() }, async (t) => {
  const log = quietLog(t)
  const api = await startApi({ log })
  t.teardown(api.stop)
  const { kubectl, store, port } = api
  const stop = new AbortController()
  const location = { serviceCIDR: '10.96.0.0/12', address: '192.0.2.1', port }
  const running = kubernetesServiceController({ store, clock: systemClock, log }, location).run(stop.signal)
  stop.abort()
  await running

  t.match(
    (await kubectl(['get', 'svc'])).stdout,
    /^NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE\nkubernetes +ClusterIP +10\.96\.0\.1 +<none> +443\/TCP +\S+\n$/,
  )
  t.match((await kubectl(['get', 'endpoints', 'kubernetes'])).stdout, new RegExp(`kubernetes +192.0.2.1:${port} `))
  t.match((await kubectl(['get', 'endpointslices'])).stdout, new RegExp(`kubernetes +IPv4 +${port} +192.0.2.1 `))
  t.match((await kubectl(['cluster-info'])).stdout, /Kubernetes control plane.* is running at/)

  const created = await kubectl(['create', 'service', 'nodeport', 'web', '--tcp=80:8080', '--node-port=30080'])
  t.equal(created.stdout, 'service/web created\n', created.stderr)
  t.match(
    (await kubectl(['get', 'svc', 'web', '-o', 'wide'])).stdout,
    /web +NodePort +10\.\S+ +<none> +80:30080\/TCP +\S+ +app=web\n/,
  )
  const again = await kubectl(['create', 'service', 'nodeport', 'other', '--tcp=80', '--node-port=30080'])
  t.match(again.stderr, /provided port is already allocated/)
  const described = (await kubectl(['describe', 'svc', 'web'])).stdout
  t.match(described, /Type: +NodePort\n/)
  t.match(described, /NodePort: +80-8080 +30080\/TCP\n/)
  t.match(
    (await kubectl(['create', 'service', 'externalname', 'out', '--external-name=example.com'])).stdout,
    'created',
  )
  t.match((await kubectl(['get', 'svc', 'out'])).stdout, /out +ExternalName +<none> +example.com +<none> /)
  t.match((await kubectl(['run', 'app', '--image=nginx', '--port=80', '--expose'])).stdout, 'service/app created')
  t.match((await kubectl(['expose', 'pod', 'app', '--name=app2', '--type=LoadBalancer'])).stdout, 'exposed')
  t.match((await kubectl(['get', 'svc', 'app2'])).stdout, /app2 +LoadBalancer +10\.\S+ +<pending> +80:3\d{4}\/TCP/)
  t.match((await kubectl(['get', 'all'])).stdout, 'service/app2')
  t.equal((await kubectl(['delete', 'svc', 'web'])).stdout, 'service "web" deleted\n')
})
