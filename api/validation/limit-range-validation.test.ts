import { test } from 'tap'
import type { LimitRangeItem } from '../limits/limit-range.ts'
import { problemText } from '../problem.ts'
import { limitRangeProblems } from './limit-range-validation.ts'

const problems = (...limits: readonly LimitRangeItem[]) =>
  limitRangeProblems({ apiVersion: 'v1', kind: 'LimitRange', metadata: {}, spec: { limits } }).map(problemText)
const item = (more: LimitRangeItem): LimitRangeItem => ({ type: 'Container', ...more })
const at = (part: string, name = 'cpu') => `spec.limits[0].${part}[${name}]: Invalid value:`

test('a range with amounts in order is valid', async (t) => {
  const amounts = { min: { cpu: '1' }, max: { cpu: '4' }, default: { cpu: '3' }, defaultRequest: { cpu: '2' } }
  t.same(problems(item({ ...amounts, maxLimitRequestRatio: { cpu: '4' } })), [])
  const same = { min: { cpu: '1' }, max: { cpu: '1' }, default: { cpu: '1' }, defaultRequest: { cpu: '1' } }
  t.same(problems(item({ ...same, maxLimitRequestRatio: { cpu: '1' } })), [])
  t.same(problems({ type: 'Pod', max: { cpu: '1' } }, { type: 'PersistentVolumeClaim', min: { storage: '1Gi' } }), [])
  t.same(problems({ type: 'PersistentVolumeClaim', max: { storage: '1Gi' } }, { type: 'example.com/camera' }), [])
})

test('the type of a limit is one of three, and each is there once', async (t) => {
  const other = 'must be a standard limit type or fully qualified'
  t.same(problems({ type: 'Node' }), [`spec.limits[0].type: Invalid value: "Node": ${other}`])
  t.match(problems({ type: '-' }), [/^spec.limits\[0\].type: Invalid value: "-": name part must/])
  t.same(problems(item({}), item({})), ['spec.limits[1].type: Duplicate value: "Container"'])
})

test('the names of resources are those of containers, or of a claim', async (t) => {
  const unknown = 'must be a standard resource type or fully qualified'
  const notOfContainers = 'must be a standard resource for containers'
  t.same(problems(item({ max: { fish: '1' } })), [
    `${at('max', 'fish')} "fish": ${unknown}`,
    `${at('max', 'fish')} "fish": ${notOfContainers}`,
  ])
  t.same(problems({ type: 'Pod', min: { storage: '1' } }), [`${at('min', 'storage')} "storage": ${notOfContainers}`])
  const strange = 'requests.example.com/camera'
  t.same(problems(item({ default: { [strange]: '1' } })), [
    `${at('default', strange)} "${strange}": doesn't follow extended resource name standard`,
  ])
  t.same(problems(item({ defaultRequest: { 'example.com/camera': '1', 'hugepages-2Mi': '2Mi' } })), [])
})

test('a pod has no defaults, and a claim has a bound', async (t) => {
  t.same(problems({ type: 'Pod', default: { cpu: '1' }, defaultRequest: { cpu: '2' } }), [
    "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
    "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'",
  ])
  t.same(problems({ type: 'Pod', default: {}, defaultRequest: {} }), [])
  t.same(problems({ type: 'PersistentVolumeClaim', max: { cpu: '1' } }), [
    'spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided',
  ])
})

test('amounts out of order are named with both', async (t) => {
  const cpu = (amount: string) => ({ cpu: amount })
  t.same(problems(item({ min: cpu('2'), max: cpu('1') })), [
    `${at('min')} "2": min value 2 is greater than max value 1`,
  ])
  t.same(problems(item({ min: cpu('2'), defaultRequest: cpu('1') })), [
    `${at('defaultRequest')} "1": min value 2 is greater than default request value 1`,
  ])
  t.same(problems(item({ max: cpu('1'), defaultRequest: cpu('2') })), [
    `${at('defaultRequest')} "2": default request value 2 is greater than max value 1`,
  ])
  t.same(problems(item({ default: cpu('1'), defaultRequest: cpu('2') })), [
    `${at('defaultRequest')} "2": default request value 2 is greater than default limit value 1`,
  ])
  t.same(problems(item({ min: cpu('2'), default: cpu('1') })), [
    `${at('default')} "2": min value 2 is greater than default value 1`,
  ])
  t.same(problems(item({ max: cpu('1'), default: cpu('2') })), [
    `${at('default')} "1": default value 2 is greater than max value 1`,
  ])
})

test('a ratio is at least 1 and at most what minimum and maximum allow', async (t) => {
  const ratio = (amount: string, more: LimitRangeItem = {}) =>
    problems(item({ maxLimitRequestRatio: { cpu: amount }, ...more }))
  t.same(ratio('900m'), [`${at('maxLimitRequestRatio')} "900m": ratio 900m is less than 1`])
  t.same(ratio('5', { min: { cpu: '100m' }, max: { cpu: '400m' } }), [
    `${at('maxLimitRequestRatio')} "5": ratio 5 is greater than max/min = 4.000000`,
  ])
  t.same(ratio('5', { min: { cpu: '100m' } }), [])
  t.same(ratio('5', { max: { cpu: '100m' } }), [])
})

test('the default limit of a device is its default request', async (t) => {
  const camera = (amount: string) => ({ 'example.com/camera': amount })
  t.same(problems(item({ default: camera('2'), defaultRequest: camera('1') })), [
    `${at('defaultRequest', 'example.com/camera')} "1": default value 2 must equal to defaultRequest value 1 in example.com/camera`,
  ])
  t.same(problems(item({ default: camera('2') })), [])
})
