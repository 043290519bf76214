/**
 * On a Node, written by its agent: `true` if it reads `desired` by reference (docs/mqtt.md, "Contents by name"). A controller that has
 * just started reads it before the agent connects. Agents of earlier versions leave it: their `connection` message counts.
 */
export const referencesAnnotation = 'bramble.dev/desired-by-reference'
