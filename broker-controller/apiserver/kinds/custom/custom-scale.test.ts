import { test } from 'tap'
import type { AnyObject } from '../../../../api/meta.ts'
import { customScale, scaleProblems } from './custom-scale.ts'

const paths = { specReplicasPath: '.spec.size', statusReplicasPath: '.status.ready' }
const withSelector = { ...paths, labelSelectorPath: '.status.selector' }
const lamp = (spec: object = {}, status: object = {}): AnyObject => ({
  ...{ apiVersion: 'example.com/v1', kind: 'Lamp', metadata: { name: 'hall', namespace: 'home', uid: 'u' } },
  ...{ spec, status },
})

test('the Scale of an object has its replicas, and its selector where one is defined', async (t) => {
  const shown = customScale(withSelector).show(lamp({ size: 3 }, { ready: 2, selector: 'app=lamp' }))
  t.match(shown, {
    ...{ apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'hall', namespace: 'home', uid: 'u' } },
    ...{ spec: { replicas: 3 }, status: { replicas: 2, selector: 'app=lamp' } },
  })
  t.same(customScale(paths).show(lamp({ size: 3 }, { ready: 2, selector: 'app=lamp' })).status, { replicas: 2 })
  t.same(customScale(withSelector).show(lamp({ size: 0 }, { ready: '2' })).status, { replicas: 0 }, 'none is reported')
  t.throws(() => customScale(paths).show(lamp({ size: '3' })), {
    message: /the spec replicas field "\.spec\.size" does not exist/,
  })
})

test('a change of the Scale writes the replicas and nothing else', async (t) => {
  const { change, fields } = customScale(paths)
  const wanted = { spec: { replicas: 5 } } as never
  t.same(change?.(lamp({ size: 3, color: 'red' }, { ready: 2 }), wanted), lamp({ size: 5, color: 'red' }, { ready: 2 }))
  t.same(change?.(lamp(), wanted), lamp({ size: 5 }))
  t.same(fields?.(wanted), { spec: { size: 5 } })
})

test('replicas must be whole numbers of 32 bits, and a selector a text', async (t) => {
  const of = (spec: object, status: object = {}) =>
    scaleProblems(withSelector, lamp(spec, status)).map(({ field, message }) => `${field}: ${message}`)
  t.same(of({}), [])
  t.same(of({ size: 2 ** 31 - 1 }, { ready: 0, selector: '' }), [])
  t.match(of({ size: 1.5 }), [/^\.spec\.size: .*accessor error: 1\.5 is of the type float64, expected int64/])
  t.match(of({ size: 'x' }), [/x is of the type string, expected int64/])
  t.match(of({ size: -1 }), [/non-negative integer/])
  t.match(of({ size: 2 ** 31 }), [/less than or equal to 2147483647/])
  t.match(of({ size: 1 }, { ready: -1, selector: 7 }), [/^\.status\.ready: /, /^\.status\.selector: .*expected string/])
  t.same(scaleProblems(undefined, lamp({ size: -1 })), [])
})
