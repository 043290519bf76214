import { test } from 'tap'
import { aContainer } from '../../testing/builders.ts'
import { logLinks } from './log-links.ts'

const id = 'a'.repeat(64)
const logPath = `/var/lib/docker/containers/${id}/${id}-json.log`

test('the log of each instance has a link in the folder of its pod, and one by the name of its container', async (t) => {
  const identity = { podNamespace: 'home', podName: 'web', podUID: 'u-1', attempt: 2 }
  t.same(logLinks([aContainer({ id, identity, logPath })]), [
    { folders: ['pods', 'home_web_u-1', 'main'], name: '2.log', target: logPath },
    {
      folders: ['containers'],
      name: `web_home_main-${id}.log`,
      target: '/var/log/pods/home_web_u-1/main/2.log',
    },
  ])
  t.equal(logLinks([aContainer({ id, state: 'exited', logPath })]).length, 2, 'also after it has ended')
})

test('there is no link without a log file, of a sandbox, before the start, or with a name that leads elsewhere', async (t) => {
  const none = [
    aContainer({ id }),
    aContainer({ id, logPath, identity: { containerName: '' } }),
    aContainer({ id, logPath, state: 'created' }),
    ...['..', 'a/b', '.hidden', ''].map((podName) => aContainer({ id, logPath, identity: { podName } })),
    aContainer({ id, logPath, identity: { containerName: '..' } }),
    aContainer({ id, logPath, identity: { podName: 'a'.repeat(253) } }),
  ]
  t.same(logLinks(none), [])
})

test('a long name is cut to what a file name may have', async (t) => {
  const [, byName] = logLinks([aContainer({ id, logPath, identity: { podName: 'p'.repeat(200) } })])
  t.equal(byName?.name.length, 255)
  t.match(byName?.name, /^p{200}_default_main-a+\.log$/)
})
