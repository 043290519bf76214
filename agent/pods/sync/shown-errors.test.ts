import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { nodeInMemory } from '../../testing/node-in-memory.ts'

/** Its program is the value of a variable, which the engine does not find and repeats in its error. */
const pod = aPod({
  name: 'web',
  containers: [
    {
      name: 'main',
      image: 'busybox:1.36',
      imagePullPolicy: 'IfNotPresent',
      env: [{ name: 'PASS', value: '/no/s3cret' }],
      command: ['$(PASS)'],
    },
  ],
})

test('the status of a container that was not started has no values of its variables', async (t) => {
  const { clock, world, runtime } = nodeInMemory(t)
  world.want(pod)
  await clock.advance(5_000)
  const error = 'exec: [value of PASS]: no such file or directory'
  t.same(world.status('web')?.containerStatuses?.[0]?.state, {
    waiting: { reason: 'RunContainerError', message: error },
  })
  t.match(JSON.stringify(await runtime.listContainers()), 's3cret', 'the engine keeps it')
  await clock.advance(300_000)
  t.notMatch(JSON.stringify([world.status('web'), world.eventTexts()]), 's3cret')
})
